/* SPDX-License-Identifier: MIT */
/*
 * forkjoin/version.h - the only place where a version is written
 *
 * The version follows semantic versioning. The SONAME contains the major number: a program built
 * with 1.x runs with every later 1.y. CMake reads the three numbers from this file.
 */
#ifndef FORKJOIN_VERSION_H
#define FORKJOIN_VERSION_H

#define FJ_VERSION_MAJOR 0
#define FJ_VERSION_MINOR 1
#define FJ_VERSION_PATCH 0

/* The version as one number that can be compared: 0x00MMmmpp, with one byte each for major, minor
 * and patch. */
#define FJ_VERSION ((FJ_VERSION_MAJOR << 16) | (FJ_VERSION_MINOR << 8) | FJ_VERSION_PATCH)

#endif /* FORKJOIN_VERSION_H */
