import pytest
from tokenizers import Tokenizer

from export.tokenizer import MAX_WORD_CHARS, PAD, UNKNOWN, make_tokenizer, vocabulary, word_counts

TEXT = "def getHTTPResponse_v2(maxRetries): return parseURL(XMLHttpRequest) # Retry on 503\n" * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return make_tokenizer(vocabulary(word_counts([TEXT])))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getHTTPResponse", ["get", "http", "response"]),
        ("max_retries", ["max", "retries"]),
        ("MAX_RETRIES", ["max", "retries"]),
        ("parseURL", ["parse", "url"]),
        ("XMLHttpRequest", ["xml", "http", "request"]),
        ("v2", ["v", "2"]),
        ("return(get);", ["return", "get"]),
        ("$get-url->max", ["get", "url", "max"]),
        ("  \n\t ", []),
        ("→ ≠ 「」", []),
    ],
)
def test_words_are_split_as_programmers_join_them(tokenizer: Tokenizer, text: str, words: list[str]) -> None:
    assert tokenizer.encode(text).tokens == words


def test_an_unknown_word_becomes_the_longest_known_beginnings(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("responseurl").tokens == ["response", "url"]
    assert tokenizer.encode("getq").tokens == ["get", "q"]


def test_no_ascii_word_is_lost(tokenizer: Tokenizer) -> None:
    word = "zxqj"
    assert "".join(tokenizer.encode(word).tokens) == word


def test_an_endless_word_is_one_unknown_token(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("q" * (MAX_WORD_CHARS + 1)).tokens == [UNKNOWN]


def test_a_saved_tokenizer_splits_the_same(tokenizer: Tokenizer) -> None:
    again = Tokenizer.from_str(tokenizer.to_str())
    assert again.encode(TEXT).ids == tokenizer.encode(TEXT).ids


def test_offsets_are_those_of_the_original_text(tokenizer: Tokenizer) -> None:
    text = "x = getHTTPResponse(1)"
    encoding = tokenizer.encode(text)
    assert [text[start:end] for start, end in encoding.offsets] == ["x", "get", "HTTP", "Response", "1"]


def test_the_vocabulary_is_ordered_by_frequency_then_name_and_holds_no_rare_word() -> None:
    words = vocabulary(word_counts(["bb bb bb aa aa aa cc cc cc cc rare"]))
    assert words[:2] == [PAD, UNKNOWN]
    assert words[-3:] == ["cc", "aa", "bb"]


def test_the_vocabulary_keeps_to_its_size() -> None:
    counts = word_counts([" ".join("abcdefghij"[int(c)] for c in str(n)) + f" word{'x' * n}" * 3 for n in range(30)])
    assert len(vocabulary(counts, size=45)) == 45
