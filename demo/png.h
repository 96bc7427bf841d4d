/* SPDX-License-Identifier: MIT */
/*
 * png.h - writes a picture of at most 256 colours as a PNG file
 *
 * The image data are not compressed, but the file is valid PNG.
 */
#ifndef DEMO_PNG_H
#define DEMO_PNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct png_colour {
    uint8_t red, green, blue;
} png_colour;

/*
 * Writes the picture. `pixels` contains the rows one after the other; each pixel is an index into
 * `palette`. Returns false if the width is 0 or above 65534, if the height is 0, or if the file
 * cannot be written.
 */
bool png_write(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height,
               const png_colour palette[256]);

#endif
