/* SPDX-License-Identifier: MIT */
/*
 * png.c - writes a picture of at most 256 colours as a PNG file
 *
 * A PNG file consists of a signature and chunks. A chunk has a length, a name, data, and the CRC-32
 * of name and data. The IDAT chunks together contain one zlib stream: a header of two bytes,
 * deflate blocks, and the Adler-32 of the uncompressed data. These data are, for each row, a filter
 * number (0: no filter) and the pixels. This writer makes each row one stored block in a chunk of
 * its own, so it needs no buffer. A stored block has at most 65535 bytes, which limits the width.
 */
#include "png.h"

#include <stdio.h>

typedef struct png_file {
    FILE *f;
    uint32_t crc; /* of the current chunk */
    uint32_t adler_a, adler_b;
    uint32_t crc_table[256];
    bool failed;
} png_file;

static void png_crc_init(png_file *p)
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t c = n;
        for (int k = 0; k < 8; k++) c = (c & 1) != 0 ? UINT32_C(0xedb88320) ^ (c >> 1) : c >> 1;
        p->crc_table[n] = c;
    }
}

static void png_bytes(png_file *p, const void *data, uint32_t n)
{
    const uint8_t *bytes = data;

    for (uint32_t i = 0; i < n; i++)
        p->crc = p->crc_table[(p->crc ^ bytes[i]) & 0xff] ^ (p->crc >> 8);
    if (fwrite(data, 1, n, p->f) != n) p->failed = true;
}

/* Writes the most significant byte first, as PNG does for all numbers and zlib for the Adler-32. */
static void png_u32(png_file *p, uint32_t x)
{
    uint8_t b[4] = {(uint8_t)(x >> 24), (uint8_t)(x >> 16), (uint8_t)(x >> 8), (uint8_t)x};
    png_bytes(p, b, 4);
}

static void png_begin(png_file *p, const char *name, uint32_t length)
{
    png_u32(p, length);
    p->crc = UINT32_MAX; /* the CRC begins with the name */
    png_bytes(p, name, 4);
}

static void png_end(png_file *p)
{
    png_u32(p, ~p->crc);
}

static void png_adler(png_file *p, const uint8_t *bytes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        p->adler_a = (p->adler_a + bytes[i]) % 65521;
        p->adler_b = (p->adler_b + p->adler_a) % 65521;
    }
}

static void png_head(png_file *p, uint32_t width, uint32_t height, const png_colour *palette)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    /* 8 bits per pixel; palette; deflate; the standard set of filters; not interlaced */
    static const uint8_t kind[5] = {8, 3, 0, 0, 0};

    png_bytes(p, signature, sizeof signature);
    png_begin(p, "IHDR", 8 + sizeof kind);
    png_u32(p, width);
    png_u32(p, height);
    png_bytes(p, kind, sizeof kind);
    png_end(p);

    png_begin(p, "PLTE", 3 * 256);
    for (int i = 0; i < 256; i++) {
        uint8_t rgb[3] = {palette[i].red, palette[i].green, palette[i].blue};
        png_bytes(p, rgb, sizeof rgb);
    }
    png_end(p);
}

/* Writes one row as one chunk with one stored block. The first chunk begins with the header of the
 * stream, and the last one ends with the Adler-32. */
static void png_row(png_file *p, const uint8_t *pixels, uint32_t width, bool first, bool last)
{
    static const uint8_t zlib_head[2] = {0x78, 0x01}, no_filter[1] = {0};
    uint32_t n = width + 1;
    uint8_t block[5] = {last, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)~n, (uint8_t)(~n >> 8)};

    png_begin(p, "IDAT", (first ? 2u : 0u) + 5u + n + (last ? 4u : 0u));
    if (first) png_bytes(p, zlib_head, sizeof zlib_head);
    png_bytes(p, block, sizeof block);
    png_bytes(p, no_filter, sizeof no_filter);
    png_bytes(p, pixels, width);
    png_adler(p, no_filter, sizeof no_filter);
    png_adler(p, pixels, width);
    if (last) png_u32(p, p->adler_b << 16 | p->adler_a);
    png_end(p);
}

bool png_write(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height,
               const png_colour palette[256])
{
    png_file p = {.adler_a = 1};

    if (width == 0 || width >= 65535 || height == 0) return false;
    p.f = fopen(path, "wb");
    if (p.f == NULL) return false;
    png_crc_init(&p);
    png_head(&p, width, height, palette);
    for (uint32_t y = 0; y < height; y++)
        png_row(&p, pixels + (size_t)y * width, width, y == 0, y == height - 1);
    png_begin(&p, "IEND", 0);
    png_end(&p);
    return fclose(p.f) == 0 && !p.failed;
}
