"""Corpora of scipy's matrices and of gensim; topics of a run as tables, and as pyLDAvis, gensim and pycisTopic read
them."""

from __future__ import annotations

import collections
import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _program
from ._errors import Error

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array

__all__ = ["TopicModel", "read_topics", "write_corpus"]

_LARGEST = 50_000_000  # count of a word in a document
_WIDEST = 4096  # bytes of a word


@dataclass(frozen=True)
class TopicModel:
    """The topics of a run, numbered as in its first chain.

    topic_word: probabilities of words, a row for each topic (topics x words). document_topic:
    mixtures, a row for each document (documents x topics); None if no documents were given. counts:
    tokens of each word in each document (documents x words, sparse), or None.
    """

    topic_word: pd.DataFrame
    document_topic: pd.DataFrame | None = None
    counts: csr_array | None = None

    def to_pyldavis(self) -> dict[str, Any]:
        """The arguments of `pyLDAvis.prepare(**model.to_pyldavis())`; documents without tokens are
        left out, as pyLDAvis divides by their lengths."""
        mixtures, counts = self._documents()
        lengths = counts.sum(axis=1)
        return {
            "topic_term_dists": self.topic_word.to_numpy(),
            "doc_topic_dists": mixtures.to_numpy()[lengths > 0],
            "doc_lengths": lengths[lengths > 0],
            "vocab": list(self.topic_word.columns),
            "term_frequency": counts.sum(axis=0),
        }

    def to_gensim(self, tokens: float = 1e6) -> Any:
        """A `gensim.models.LdaModel` of these topics. Its topics' pseudo-counts sum to `tokens`."""
        from gensim.corpora import Dictionary
        from gensim.models import LdaModel

        words = {str(word): i for i, word in enumerate(self.topic_word.columns)}
        dictionary = Dictionary()
        dictionary.token2id = words
        dictionary.id2token = {i: word for word, i in words.items()}
        model = LdaModel(num_topics=len(self.topic_word), id2word=dictionary.id2token)
        model.state.sstats = (self.topic_word.to_numpy() * tokens).astype(model.dtype)
        model.sync_state()
        return model

    def to_pycistopic(self) -> dict[str, pd.DataFrame]:
        """The tables `cell_topic` (topics x cells) and `topic_region` (regions x topics), called and
        laid out as the attributes of pycisTopic's CistopicLDAModel: topics are Topic1, Topic2, ..."""
        mixtures, _ = self._documents()
        names = [f"Topic{k + 1}" for k in range(len(self.topic_word))]
        return {
            "cell_topic": mixtures.T.set_axis(names, axis=0),
            "topic_region": self.topic_word.T.set_axis(names, axis=1),
        }

    def _documents(self) -> tuple[pd.DataFrame, csr_array]:
        if self.document_topic is None or self.counts is None:
            raise Error("topics: found no documents, expected emass.read_topics(file, documents=...)")
        return self.document_topic, self.counts


def read_topics(
    file: str | os.PathLike[str], documents: str | os.PathLike[str] | None = None, *, fold_in: str = "em"
) -> TopicModel:
    """Reads the topics of a run of model lda, averaged over draws and over the chains that found them.

    documents: a corpus with the words of the run, such as that of the run, in any format that a run
    reads. Their mixtures are estimated with the topics fixed. fold_in: "em", from the topics alone,
    or "gibbs", by the Gibbs sampler of the model."""
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "topics.h5")
        _program.ask("topics", os.fspath(file), "--output", table)
        value, words, _ = _read_table(table)
        topic_word = pd.DataFrame(value, columns=words).rename_axis(index="topic", columns="word")
        if documents is None:
            return TopicModel(topic_word)
        table = os.path.join(folder, "mixtures.h5")
        given = os.fspath(documents)
        _program.ask("topics", os.fspath(file), "--documents", given, "--fold-in", fold_in, "--output", table)
        value, _, names = _read_table(table)
        mixtures = pd.DataFrame(value, index=names).rename_axis(index="document", columns="topic")
        return TopicModel(topic_word, mixtures, _read_counts(given, folder, len(topic_word.columns)))


def _read_table(path: str) -> tuple[Any, list[str], list[str] | None]:
    import h5py

    with h5py.File(path) as file:
        table = file["table"]
        names = [name.decode() for name in table["name"]]
        rows = [name.decode() for name in table["document"]] if "document" in table else None
        return table["value"][:], names, rows


def _read_counts(documents: str, folder: str, n_word: int) -> csr_array:
    import h5py
    import numpy as np
    from scipy.sparse import csr_array

    path = documents
    if not h5py.is_hdf5(path):
        path = os.path.join(folder, "corpus.h5")
        _convert(documents, path)
    elif "table" not in h5py.File(path):  # of AnnData
        path = os.path.join(folder, "corpus.h5")
        _program.ask("convert", documents, path)
    with h5py.File(path) as file:
        value, column, start = (file["table"][part][:] for part in ("value", "column", "start"))
    return csr_array((value.astype(np.int64), column, start), shape=(len(start) - 1, n_word))


def _convert(documents: str, path: str) -> None:
    """Converts a corpus of text. Its format is the first one that fits."""
    formats = ["lda-c", "docword", "mtx"]
    for name in formats:
        try:
            _program.ask("convert", documents, path, "--format", name)
            return
        except Error:
            if name == formats[-1]:
                raise


def write_corpus(
    file: str | os.PathLike[str],
    counts: Any,
    vocabulary: Sequence[str] | Mapping[int, str],
    documents: Sequence[str] | None = None,
) -> None:
    """Writes a corpus as HDF5, which a config names as model.data.

    counts: tokens of each word in each document, as a matrix of scipy or numpy (documents x words; such as
    scipy.sparse.load_npz reads), or as gensim's bags of words, a list of (word, count) for each document.
    vocabulary: the words, in the order of the columns, or gensim's Dictionary. documents: their names."""
    import h5py
    import numpy as np

    if os.path.exists(file):
        raise Error(f"{os.fspath(file)}: found a file, expected a new name")
    names = _names("word", vocabulary)
    if len(set(names)) < len(names):
        [(twin, _)] = collections.Counter(names).most_common(1)
        raise Error(f"write_corpus: found the word {twin.decode()!r} twice, expected every word once")
    titles = None if documents is None else _names("document", documents)
    matrix = _matrix_of(counts, len(names))
    if matrix.shape[1] != len(names) or (titles is not None and len(titles) != matrix.shape[0]):
        named = f"{len(names)} words" + ("" if titles is None else f" and {len(titles)} names of documents")
        raise Error(f"write_corpus: found {named}, expected those of {matrix.shape[0]} documents x {matrix.shape[1]} words")
    part = f"{os.fspath(file)}.{secrets.token_hex(6)}.part"  # no other call has this name
    try:
        with h5py.File(part, "x") as out:
            out.attrs["creation_library"] = np.bytes_("emass")
            table = out.create_group("table")
            table["value"] = matrix.data.astype("<f8")
            table["column"] = matrix.indices.astype("<i4")
            table["start"] = matrix.indptr.astype("<i8")
            for name, texts in {"name": names, "document": titles}.items():
                if texts is not None:
                    table[name] = np.array(texts, dtype=np.bytes_)
        _publish(part, file)
    except OSError as failure:
        raise Error(f"{os.fspath(file)}: cannot be written: {failure.strerror or failure}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def _publish(part: str, file: str | os.PathLike[str]) -> None:
    """Gives the complete file its name, unless another file has taken it meanwhile."""
    try:
        os.link(part, file)
    except FileExistsError:
        raise Error(f"{os.fspath(file)}: found a file, expected a new name") from None
    except OSError:  # a file system without links
        os.replace(part, file)


def _names(what: str, given: Sequence[str] | Mapping[int, str]) -> list[bytes]:
    """The names as bytes of UTF-8."""
    try:
        names = [given[i] for i in range(len(given))] if isinstance(given, Mapping) else list(given)
    except (KeyError, TypeError):
        raise Error(f"write_corpus: found no list of {what}s and no Dictionary of gensim, expected one") from None
    out = []
    for i, name in enumerate(names):
        code = name.encode(errors="ignore") if isinstance(name, str) else b""
        if not isinstance(name, str) or "\0" in name or code.decode() != name or len(code) > _WIDEST:
            raise Error(f"write_corpus: found {name!r:.80} as {what} {i}, expected a text of at most {_WIDEST} bytes")
        out.append(code)
    return out


def _matrix_of(counts: Any, n_word: int) -> csr_array:
    """The counts in compressed rows: positive integers, each word once in a document."""
    import numpy as np
    from scipy.sparse import csr_array

    try:
        given = counts if hasattr(counts, "shape") else _from_bags(counts, n_word)
        if getattr(getattr(given, "dtype", None), "kind", "") in set("biu"):
            given = given.astype(np.int64)  # sums of narrow integers would wrap around
        matrix = csr_array(given)
        matrix.check_format(full_check=True)
        matrix = csr_array(matrix, copy=True)
        matrix.sum_duplicates()
    except (ValueError, TypeError, IndexError) as failure:
        raise Error(f"write_corpus: found no matrix of counts: {str(failure).splitlines()[0]}, expected documents x words") from None
    if len(matrix.shape) != 2:
        raise Error(f"write_corpus: found a matrix of {len(matrix.shape)} dimensions, expected documents x words")
    matrix.eliminate_zeros()
    value = matrix.data
    sound = np.zeros(len(value), bool)
    if np.isrealobj(value):
        sound = (value > 0) & (value <= _LARGEST) & (value == np.rint(value))
    if not sound.all():
        k = int(np.argmin(sound))
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        raise Error(
            f"write_corpus: found {value[k]} for word {matrix.indices[k]} of document {row}, expected a count, an integer "
            f"from 1 to {_LARGEST}"
        )
    if len(value) == 0:
        raise Error(f"write_corpus: found no words in {matrix.shape[0]} documents, expected some")
    return matrix


def _from_bags(bags: Iterable[Iterable[tuple[int, int]]], n_word: int) -> csr_array:
    from scipy.sparse import csr_array

    rows = [list(bag) for bag in bags]
    entries = [(row, word, count) for row, bag in enumerate(rows) for word, count in bag]
    places, words, values = (list(part) for part in zip(*entries, strict=True)) if entries else ([], [], [])
    return csr_array((values, (places, words)), shape=(len(rows), n_word))
