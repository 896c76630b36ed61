#include "data/reader/binary_kind.h"

#include <string.h>

#define PANDAS(reader)                                                                             \
    "in Python: pandas." reader "(FILE).to_csv(NEW, index=False); a data frame of Python needs "   \
    "no file: emass.Model"
#define BYTES(text) (text), sizeof(text) - 1

const em_binary_kind *em_binary_kind_of(const char *line, size_t length)
{
    static const char utf_8[] = "text in UTF-8";
    static const em_binary_kind kind[] = {
        {BYTES("PAR1"), false, "a Parquet file", PANDAS("read_parquet")},
        {BYTES("ARROW1"), false, "an Arrow (Feather) file", PANDAS("read_feather")},
        {BYTES("PK\x03\x04"), true, "a zip file, such as .xlsx, .ods or .zip",
         "save a sheet of a workbook as CSV, or unzip -p FILE >NEW"},
        {BYTES("\xD0\xCF\x11\xE0"), true, "a workbook of Excel (.xls)", "save its sheet as CSV"},
        {BYTES("BZh91AY&SY"), true, "a file compressed by bzip2",
         "bzip2 -dk FILE; .gz and .xz are read as they are"},
        {BYTES("\x28\xB5\x2F\xFD"), true, "a file compressed by zstd",
         "zstd -d FILE; .gz and .xz are read as they are"},
        {BYTES("\x1F\x8B"), true, "a file compressed by gzip", "gzip -dk FILE"},
        {BYTES("\xFF\xFE\0\0"), true, "text in UTF-32", "iconv -f UTF-32 -t UTF-8 FILE >NEW",
         utf_8},
        {BYTES("\xFF\xFE"), true, "text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE >NEW", utf_8},
        {BYTES("\xFE\xFF"), true, "text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE >NEW", utf_8}};

    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
        if (length >= kind[k].n && memcmp(line, kind[k].bytes, kind[k].n) == 0)
            return &kind[k];
    return NULL;
}
