/* SPDX-License-Identifier: MIT */
/*
 * png.h - writes a picture of at most 256 colours as a PNG file
 *
 * Without compression: the image data are stored blocks. Any viewer reads that.
 */
#ifndef DEMO_PNG_H
#define DEMO_PNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct png_colour {
    uint8_t red, green, blue;
} png_colour;

/*
 * Writes `pixels`, row by row, each an index into `palette`. Returns false if the file could
 * not be written.
 */
bool png_write(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height,
               const png_colour palette[256]);

#endif
