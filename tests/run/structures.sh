#!/usr/bin/env bash
# Masses of low rank and of blocks through the whole program: chosen, learned, the same on any ranks
# and shards, kept in checkpoints and in the file, taken over by a later run.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

cat >run.yaml <<'YAML'
model: {name: gaussian, dim: 40, condition: 1000, rotation: true}
run: {chains: 6, warmup: 120, draws: 60, seed: 3}
output: {flush_every: 20, save_unconstrained: true}
YAML
low_rank=(--set mass.structure=low_rank)
blocks=(--set mass.structure=block_diagonal --set 'mass.blocks=[10, 1, 20]')
leaps=(--set sampler.leapfrog_steps=5 --set mass.s_count=60)

run_on() { # RANKS FILE ARGUMENT...
    local ranks=$1 file=$2
    shift 2
    limited mpirun -n "$ranks" "$emass" run run.yaml --quiet --overwrite --output "$file" "$@"
}

same() { # ARGUMENT...
    run_on 1 a.h5 "$@" && run_on 4 b.h5 "$@" && cmp a.h5 b.h5
}

# Ended by a fault while its chains learn, and gone on with on other ranks.
resumes() { # EVALUATION ARGUMENT...
    local evaluation=$1
    shift
    set -- --set output.checkpoint_every=0 "$@"
    rm -f part.h5*
    run_on 1 whole.h5 "$@" || return 1
    ! EMASS_FAULT=model:1:$evaluation run_on 2 part.h5 "$@" && [ -s part.h5.checkpoint ] || return 1
    limited mpirun -n 3 "$emass" run run.yaml --quiet --resume --output part.h5 "$@" &&
        cmp whole.h5 part.h5
}

has() { # FILE TEXT...
    local file=$1 text said
    shift
    said=$(ncdump -h "$file")
    for text in "$@"; do
        grep -qF -- "$text" <<<"$said" || { echo "no $text" && return 1; }
    done
}

takes_over() { # FILE
    run_on 2 next.h5 --set mass.from="$1" --set mass.estimator=none --set run.warmup=20 &&
        for name in "${@:2}"; do
            h5diff "$1" next.h5 "/mass_adaptation/$name" || return 1
        done
}

chooses() { # DIM TEXT ARGUMENT...
    local dim=$1 text=$2
    shift 2
    run_on 2 chosen.h5 --set model.dim="$dim" --set model.rotation=false --set run.warmup=20 \
        --set run.draws=10 --set output.save_unconstrained=false "$@" &&
        has chosen.h5 "$text"
}

check 'low rank: the same bytes on 1 4 ranks' same "${low_rank[@]}"
check 'its scales, values and directions are in the file' has a.h5 'double inv_mass_scale(' \
    'double inv_mass_value(' 'double inv_mass_direction('
cp a.h5 low_rank.h5
check 'blocks: the same bytes on 1 4 ranks' same "${blocks[@]}"
check 'their numbers and sizes are in the file' has a.h5 'inv_mass_blocks_dim_0 = 510' \
    'int64 inv_mass_block_size('
cp a.h5 blocks.h5
check 'those of the model, where none are listed' same --set mass.structure=block_diagonal \
    --set model.blocks=3
check 'of 14, 13 and 13 parameters' has a.h5 'inv_mass_blocks_dim_0 = 534'
check 'low rank by windows of a fixed length' same "${low_rank[@]}" "${leaps[@]}"
check 'each chain for itself' same "${low_rank[@]}" "${leaps[@]}" --set mass.share=none
check 'more chains than samples are kept of' same "${low_rank[@]}" --set run.chains=230 \
    --set run.draws=5 --set run.warmup=40
check 'blocks, momentum' same "${blocks[@]}" "${leaps[@]}" --set mass.estimator=momentum
check 'a run of low rank goes on where it stopped' resumes 700 "${low_rank[@]}"
check 'so does one by windows of a fixed length' resumes 300 "${low_rank[@]}" "${leaps[@]}"
check 'so does one of blocks' resumes 700 "${blocks[@]}"
check 'so does one of many chains, few of whose trees are ended' resumes 2100 --set run.chains=64 \
    --set run.warmup=40 --set run.draws=2
check 'a mass of low rank is taken over' takes_over low_rank.h5 inv_mass_scale inv_mass_value \
    inv_mass_direction
check 'one of blocks is taken over' takes_over blocks.h5 inv_mass_blocks inv_mass_block_size
check 'beyond 200 dimensions it is of low rank' chooses 201 'double inv_mass_scale('
check 'up to 200 it is dense' chooses 200 'double inv_mass(inv_mass_dim_0, inv_mass_dim_1)'
check 'where nothing is learned it is a diagonal' chooses 201 'double inv_mass(inv_mass_dim_0)' \
    --set mass.estimator=none
check 'low rank by another criterion' run_is_refused 'expected the estimator fisher' "${low_rank[@]}" \
    --set mass.estimator=variance
check 'low rank that is averaged' run_is_refused 'expected the estimator fisher' "${low_rank[@]}" \
    --set mass.kappa.eta=0.6
check 'blocks that nobody lists' run_is_refused 'mass.blocks: found 0 sizes' \
    --set mass.structure=block_diagonal
check 'blocks larger than the model' run_is_refused 'at most 40 parameters' \
    --set mass.structure=block_diagonal --set 'mass.blocks=[30, 20]'
finish
