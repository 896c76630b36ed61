/* What rides along with an agreement: the word of rank 0, whatever the others say. */
#include "par/message.h"
#include "par/world.h"
#include "support/everywhere.h"
#include "support/on_grid.h"

#include <mpi.h>
#include <unistd.h>

/* How fast the clock of MPI goes: so fast that the patience of a rank ends at once, or as usual. */
static double clock_rate = 1;

double MPI_Wtime(void)
{
    return clock_rate * PMPI_Wtime();
}

START_TEST(rank_0_has_the_word)
{
    em_world_tell(em_world_rank() == 0 ? 7 : 3);
    assert_everywhere(em_agree(EM_OK) == EM_OK, "agreed");
    assert_everywhere(em_world_told() == 7, "told");
    em_world_tell(0);
    assert_everywhere(em_world_told() == 7, "not before they meet");
    assert_everywhere(em_agree(EM_OK) == EM_OK, "agreed again");
    assert_everywhere(em_world_told() == 0, "told again");
    assert_everywhere(em_agree(EM_OK) == EM_OK, "and again");
    assert_everywhere(em_world_told() == 0, "until there is another word");
}
END_TEST

START_TEST(a_failure_does_not_silence_it)
{
    em_status status = EM_OK;

    em_world_tell(5);
    if (em_world_rank() == em_world_size() - 1)
        status = em_fail(EM_EDATA, "a failure");
    assert_everywhere(em_agree(status) == EM_EDATA, "all fail");
    assert_everywhere(em_world_told() == 5, "and are told");
}
END_TEST

/* On their way out with a failure that all know of, some are slower than the patience of others. */
START_TEST(what_was_agreed_on_is_waited_for)
{
    for (int k = 0; k < 2; k++) {
        em_status status = em_world_rank() == 0 ? em_fail(EM_EDATA, "a bad line %d", k) : EM_OK;

        status = k == 0 ? em_agree_first(status, 0) : em_agree(status);
        clock_rate = 1e5;
        if (em_world_size() == 2 && em_world_rank() == 1)
            usleep(200000);
        status = em_agree(status);
        clock_rate = 1;
        assert_everywhere(status == EM_EDATA, "agreed again");
    }
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("world");

    tcase_add_test(tests, rank_0_has_the_word);
    tcase_add_test(tests, a_failure_does_not_silence_it);
    tcase_add_test(tests, what_was_agreed_on_is_waited_for);
    return run_case_on_ranks(tests, argc, argv);
}
