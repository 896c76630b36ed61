/*
 * The page of a report and its script, as the build found them beside this file: two strings that
 * end with a NUL. The paths are from the folder of the Makefile, where the compiler runs.
 */
#define EMBED(name, path)                                                                          \
    __asm__(".section .rodata\n.global " name "\n" name ":\n.incbin \"" path                       \
            "\"\n.byte 0\n.previous\n")

EMBED("em_report_page", "src/app/report/report.html");
EMBED("em_report_script", "src/app/report/report.js");
