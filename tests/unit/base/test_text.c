/* Text of numbers. */
#include "base/text.h"
#include "support/tap.h"

#include <check.h>
#include <math.h>
#include <string.h>

static bool reads(double x, const char *expected)
{
    return strcmp(em_three_digits(x).text, expected) == 0;
}

START_TEST(test_three_digits)
{
    ck_assert(reads(0, "0"));
    ck_assert(reads(12.34, "12.3"));
    ck_assert(reads(999.6, "1000"));
    ck_assert(reads(1114, "1110"));
    ck_assert(reads(-98765, "-98800"));
    ck_assert(reads(1.234e14, "123000000000000"));
    ck_assert(reads(1.234e-7, "1.23e-07"));
    ck_assert(reads(1.234e15, "1.23e+15"));
    ck_assert(reads(-INFINITY, "-inf"));
    ck_assert(reads(NAN, "nan"));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("text");

    tcase_add_test(tests, test_three_digits);
    return run_case(tests, CK_FORK);
}
