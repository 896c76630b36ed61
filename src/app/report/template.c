/*
 * The page of a report and its script, as the build found them beside this file: two strings that
 * end with a NUL. The paths are from the folder of the Makefile, where the compiler runs.
 */
#define FOLDER        "src/app/report/"
#define TEXT_OF(file) ".incbin \"" FOLDER file "\"\n"
#define EMBED(name, texts)                                                                         \
    __asm__(".section .rodata\n.global " name "\n" name ":\n" texts ".byte 0\n.previous\n")

EMBED("em_report_page", TEXT_OF("report.html"));
EMBED("em_report_script", TEXT_OF("plot.js") TEXT_OF("report.js"));
