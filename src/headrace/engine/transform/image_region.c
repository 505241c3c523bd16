/* Decodes only those rows and columns of a JPEG that are asked for: libjpeg-turbo's own skip-rows and crop-columns calls.

   One function without state, called through ctypes and so without the interpreter lock. Whatever is unusual is refused,
   and the caller decodes with Pillow instead, which is the definition of the pixels. Built by headrace/native.py. */

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* Columns decoded beyond the region at each side: the smoothing of colours looks at its neighbours. */
#define MARGIN 16

struct trap {
    struct jpeg_error_mgr base;
    jmp_buf leave;
    int has_warned;
};

static void on_error(j_common_ptr info) { longjmp(((struct trap *)info->err)->leave, 1); }

static void on_message(j_common_ptr info, int level) {
    if (level < 0) ((struct trap *)info->err)->has_warned = 1;
}

/* Args: the file; how many times smaller to decode (1, 2, 4, 8); the size that the whole picture then has; the region
   {left, top, right, bottom} in it; memory for (bottom - top) rows of (right - left) RGB pixels.
   Returns 1 if `out` holds the pixels, 0 if not. */
int headrace_decode_region(const unsigned char *data, size_t num_bytes, int step, int width, int height,
                           const int region[4], unsigned char *out) {
    struct jpeg_decompress_struct info;
    struct trap trap;
    unsigned char *volatile row = NULL;

    info.err = jpeg_std_error(&trap.base);
    trap.base.error_exit = on_error;
    trap.base.emit_message = on_message;
    trap.has_warned = 0;
    if (setjmp(trap.leave)) {
        free(row);
        jpeg_destroy_decompress(&info);
        return 0;
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, data, num_bytes);
    jpeg_read_header(&info, TRUE);
    info.scale_num = 1;
    info.scale_denom = step;
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    if ((int)info.output_width != width || (int)info.output_height != height || region[0] < 0 || region[1] < 0 ||
        region[2] > width || region[3] > height || region[0] >= region[2] || region[1] >= region[3])
        longjmp(trap.leave, 1);

    JDIMENSION left = region[0] > MARGIN ? region[0] - MARGIN : 0;
    JDIMENSION right = region[2] + MARGIN < width ? region[2] + MARGIN : width;
    JDIMENSION columns = right - left;
    if ((int)columns < width) jpeg_crop_scanline(&info, &left, &columns); /* widens to whole blocks */
    size_t begin = 3 * (region[0] - (size_t)left), wanted = 3 * (size_t)(region[2] - region[0]);
    if ((int)left > region[0] || begin + wanted > 3 * (size_t)columns || !(row = malloc(3 * (size_t)columns)))
        longjmp(trap.leave, 1);
    if (region[1] > 0) jpeg_skip_scanlines(&info, region[1]);
    for (int y = region[1]; y < region[3]; y++) {
        JSAMPROW rows[1] = {row};
        if (jpeg_read_scanlines(&info, rows, 1) != 1) longjmp(trap.leave, 1);
        memcpy(out, row + begin, wanted);
        out += wanted;
    }
    free(row);
    jpeg_destroy_decompress(&info); /* the rows below the region are never looked at */
    return !trap.has_warned;
}
