#!/usr/bin/env bash
# The library as it is installed: programs built against that alone (tests/examples), what they draw,
# what they write and lose, which symbols they see; the manual pages and the completion beside it.
# shellcheck source=tests/run/lib.sh disable=SC2317,SC2046
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
[ -e "$build/libemass.a" ] || { not_ok "there is something to install (make all builds it)" && finish; }
mkdir built && cp -p "$build"/{emass,libemass.a,libemass.so.*} built # nothing is compiled
make -s -o all -C "$project" B="$scratch/built" PREFIX="$scratch/installed" install || exit 1
installed=$scratch/installed
export PKG_CONFIG_PATH=$installed/lib/pkgconfig SOURCE_DATE_EPOCH=0
mkdir empty && cd empty && cp "$project"/tests/examples/*.c . || exit 1

builds() { # NAME COMPILER [FLAG...]
    "$2" -std=c17 -Wall -Wextra -Werror "$1.c" $(pkg-config --cflags --libs "${@:3}" emass) -lm -o "$1"
}

# A line per half and seed; means and standard deviations within five standard errors, of at least
# 400 draws' worth.
right() { # FILE
    sort "$1" | awk '{ half = $2; sd = half ? 5 : 1; mean = half ? 10 : 0
        error = 5 * sd / sqrt(400)
        good += $6 - mean < error && mean - $6 < error && $8 - sd < error && sd - $8 < error &&
                $10 + 0 == 2000 && seen[half, $4]++ == 0 }
        END { exit !(good == 4 && NR == 4) }'
}

halves() { # RANKS
    limited mpirun -n "$1" ./halves >out.txt 2>err.txt && cat out.txt err.txt &&
        right out.txt && [ ! -s err.txt ]
}

into_file() {
    limited mpirun -n 2 ./file schools.h5 >out.txt 2>err.txt && cat out.txt err.txt &&
        [ "$(cat err.txt)" = 'file: nothing to resume at schools.h5: starting' ] &&
        grep -q '^schools.h5: .*4 chains x 500 draws' out.txt
}

# The config of the example, run by the program on another number of ranks.
same_file() {
    sed -n 's/^ *"\(\(model\|sampler\|run\): .*\)\\n";\{0,1\}$/\1/p; s/.*config\[\] = "\(.*\)\\n"$/\1/p' file.c |
        sort -u >schools.yaml
    limited "$emass" run schools.yaml --quiet --output program.h5 && cmp schools.h5 program.h5
}

goes_on() { # killed within the run, if it gets so far
    ./file again.h5 >/dev/null &
    local process=$!
    sleep 1
    kill -9 "$process"
    wait "$process"
    limited ./file again.h5 && cmp schools.h5 again.h5 && limited ./file again.h5 | grep -q 'is complete'
}

# What the dynamic library shows is what the headers declare for it.
symbols() {
    diff <(nm -D --defined-only "$installed"/lib/libemass.so | awk '{ print $3 }' | sort) \
        <(sed -n 's/^EM_API .*\b\(em_[a-z_]*\)(.*/\1/p' "$installed"/include/emass/*.h "$installed"/include/emass/model/*.h | sort)
}

alone() { # the headers need none but each other and MPI's
    local header
    for header in "$installed"/include/emass/*.h "$installed"/include/emass/model/*.h; do
        echo "#include <${header#"$installed/include/"}>"
    done >headers.c
    cc -std=c17 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror $(pkg-config --cflags emass) \
        -fsyntax-only headers.c &&
        ! grep -hoE '#include "[^"]*"' "$installed"/include/emass/*.h "$installed"/include/emass/model/*.h | grep -v '"emass/'
}

# A program in C++ finds the functions by their names in C, and a plug-in in it has typed rows.
in_cpp() {
    local flags=(-std=c++20 -Wall -Wpedantic -Wconversion -Werror -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX)
    cat headers.c - >version.cc <<<'int main() { return em_version()[0] == 0; }'
    cat >row.cc <<'C'
#include <emass/plugin.h>
struct options { double scale; };
static const em_field fields[] = {EM_REAL(options, scale, .fallback = "1", .doc = "of it"), {}};
static double density(const void *given, const double *theta)
{
    return -theta[0] * theta[0] / static_cast<const options *>(given)->scale;
}
EMASS_PLUGIN({.name = "row", .doc = "one", .options_size = sizeof(options), .fields = fields, .dim = 1,
              .log_density = density});
C
    c++ "${flags[@]}" version.cc $(pkg-config --cflags --libs emass) -o version && ./version &&
        c++ "${flags[@]}" -shared -fPIC $(pkg-config --cflags emass) row.cc -o row.so &&
        "$emass" list models ./row.so | grep -q 'scale .*default 1' &&
        sed -i 's/double scale/float scale/' row.cc &&
        ! c++ "${flags[@]}" -shared -fPIC $(pkg-config --cflags emass) row.cc -o row.so 2>/dev/null
}

statically() {
    mv "$installed"/lib/libemass.so* . && builds halves cc --static && ! ldd halves | grep emass &&
        halves 2 && mv libemass.so* "$installed"/lib
}

without_loss() {
    limited valgrind -q --leak-check=full --show-leak-kinds=definite,indirect --log-file=report \
        ./halves >out.txt && right_alone && ! awk 'BEGIN { RS = "==[0-9]+== *\n" }
        /libemass|\(in [^)]*\/halves\)/ && !/PMPI_Init|mpi_finalize/ { print; found = 1 } END { exit !found }' report
}
right_alone() { [ "$(grep -c '^half 0 seed' out.txt)" = 2 ]; }

# One thread calls while another one is in a call, by way of a sink; and later, when it is not.
cat >threads.c <<'C'
#include <emass/emass.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static em_context *context[2];
static em_status status;
static char said[256];

static void *sample(void *unused)
{
    em_run *run = NULL;

    status = em_run_create(
        context[1], &(em_run_request){.config = "model: {name: eight_schools}\nrun: {draws: 20}\n"}, &run);
    if (!status)
        status = em_run_advance(run, INT64_MAX);
    snprintf(said, sizeof said, "%s", em_error_text()); /* of this thread */
    em_run_destroy(&run);
    return unused;
}

static em_status by_thread(void)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, sample, NULL) || pthread_join(thread, NULL)
               ? em_fail(EM_EINTERNAL, "no thread")
               : EM_OK;
}

static em_status take(void *state, const em_stored_draw *draw)
{
    int *n = state;

    (void)draw;
    return (*n)++ == 0 ? by_thread() : EM_OK;
}

int main(int argc, char **argv)
{
    int provided, n = 0;
    em_run *run = NULL;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    if (em_context_create(MPI_COMM_WORLD, NULL, &context[0]) ||
        em_context_create(MPI_COMM_WORLD, NULL, &context[1]))
        return 1;
    if (em_run_create(context[0],
                      &(em_run_request){.config = "model: {name: eight_schools}\nrun: {draws: 20}\n",
                                        .sink = {.state = &n, .take = take}},
                      &run) ||
        em_run_advance(run, INT64_MAX))
        return 2;
    if (n != 80 || status != EM_EUSAGE || !strstr(said, "another thread"))
        return 3;
    em_run_destroy(&run);
    if (by_thread() || status)
        return 4;
    em_context_destroy(&context[0]);
    em_context_destroy(&context[1]);
    MPI_Finalize();
    puts("each in its turn");
    return 0;
}
C
in_turns() { builds threads cc && limited ./threads | grep -qx 'each in its turn'; }

# With a space in both of what a package is made with.
spaced() {
    local staged="$scratch/a stage/opt/an emass"
    make -s -o all -C "$project" B="$scratch/built" DESTDIR="$scratch/a stage" PREFIX='/opt/an emass' install &&
        "$staged/bin/emass" --version && [ -s "$staged/share/man/man1/emass.1" ] && [ ! -e "$project/emass" ] &&
        PKG_CONFIG_PATH=$staged/lib/pkgconfig pkg-config --cflags emass | grep -F -e '-I/opt/an\ emass/include'
}
check 'it may be installed where names have spaces' spaced
check 'a program with its own density builds' builds halves cc
check 'on 4 ranks its halves have each their own law, twice' halves 4
check 'on 3 ranks, of which one half is one' halves 3
check 'a program that writes a file builds with mpicc' builds file mpicc
check 'it writes its file' into_file
check 'it is the file that emass run writes' same_file
check 'killed, it goes on' goes_on
check 'a second thread is refused while one is in a call, and served after it' in_turns
check 'the library shows what its headers declare' symbols
check 'its headers stand alone' alone
if have c++; then
    check 'programs and plug-ins may be in C++' in_cpp
else
    skip 'programs and plug-ins may be in C++' 'c++ is not installed'
fi
if have valgrind; then
    check 'nothing is lost' without_loss
else
    skip 'nothing is lost' 'valgrind is not installed'
fi
check 'a program can be linked statically' statically

# ---- pages and completion ----

commands() { "$emass" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }
keys() { "$emass" list keys | sed 's/$/=/' | sort; }
# What its own options are: examples name other commands.
options() {
    "$emass" "$1" --help | sed '/^Exit status/,$d' | grep -v '^ *emass ' | grep -o -- '--[a-z][a-z-]*' | sort -u
}

page() { # FILE: groff has nothing to say of it
    [ -s "$1" ] && ! groff -man -ww -Tutf8 -z "$1" 2>&1 | grep .
}

complete_page() {
    local command option text
    text=$(sed 's/\\-/-/g' "$installed"/share/man/man1/emass.1)
    for command in $(commands); do
        grep -q "emass $command" <<<"$text" || { echo "$command" && return 1; }
        for option in $(options "$command"); do
            grep -q -- "$option" <<<"$text" || { echo "$command $option" && return 1; }
        done
    done
    grep -q minibatch_sums <<<"$text" && grep -q em_run_advance "$installed"/share/man/man7/emass-library.7
}

completes() { # WORD... : what may stand for the last one
    (
        # shellcheck disable=SC1091
        . "$installed"/share/bash-completion/completions/emass
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _emass
        printf '%s\n' "${COMPREPLY[@]}"
    )
}

completion() {
    local command
    diff <(completes emass '' | grep -v '^--' | sort) <(commands | sort) || return 1
    for command in $(commands); do
        diff <(completes emass "$command" -- | sort -u) \
            <({ options "$command" && echo --help; } | sort -u) || return 1
    done
    diff <(completes emass run x.yaml --set '' | sort) <(keys) || return 1
    completes emass run x.yaml --set run.dr | grep -qx 'run.draws=' || return 1
    completes emass run --progress b | grep -qx bar && completes emass list mod | grep -qx models &&
        completes emass run fil | grep -qx file.c && [ -z "$(completes emass run --seed '')" ]
}

if have groff; then
    check 'emass.1 is well formed' page "$installed"/share/man/man1/emass.1
    check 'emass-library.7 is well formed' page "$installed"/share/man/man7/emass-library.7
else
    skip 'the manual pages are well formed' 'groff is not installed'
fi
check 'the manual page has every command and option' complete_page
check 'the completion of bash has them too' completion
if have zsh; then
    check 'zsh reads its completion' zsh -n "$installed"/share/zsh/site-functions/_emass
else
    skip 'zsh reads its completion' 'zsh is not installed'
fi
finish
