/**
 * @file
 * Types that public structures contain but that only the library reads and
 * writes. Nothing here is for the user.
 */
#ifndef COIL_INTERNAL_H
#define COIL_INTERNAL_H

/** @cond internal */
struct coil__list {
    struct coil__list *next, *previous;
};
/** @endcond */

#endif
