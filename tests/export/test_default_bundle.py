"""The bundle that ships: sound, small, honest about its training, and able to find obvious things."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="running a bundle needs the `cpu` or `gpu` extra")

from export.corpus.manifest import read_manifest
from server.embed.bundle import MANIFEST, Bundle, resolve_model
from server.embed.embedder import Embedder

MAX_BYTES = 16_000_000
FOLDER = resolve_model("default")

FUNCTIONS = {
    "retry a request with exponential backoff": """
def call_with_retry(send, attempts=5):
    for attempt in range(attempts):
        try:
            return send()
        except ConnectionError:
            time.sleep(2 ** attempt)
    raise TimeoutError
""",
    "read a json configuration file": """
function loadSettings(path) {
  const text = fs.readFileSync(path, 'utf8')
  return { ...defaults, ...JSON.parse(text) }
}
""",
    "hash the password of a user": """
func (u *User) SetSecret(plain string) error {
    digest, err := bcrypt.GenerateFromPassword([]byte(plain), bcrypt.DefaultCost)
    u.passwordDigest = string(digest)
    return err
}
""",
    "resize an image to a thumbnail": """
public BufferedImage shrink(BufferedImage source, int maxWidth) {
    double ratio = (double) maxWidth / source.getWidth();
    return scale(source, maxWidth, (int) (source.getHeight() * ratio));
}
""",
    "escape html special characters": """
fn sanitize(input: &str) -> String {
    input.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
""",
    "delete files older than some days from the cache": """
def prune(directory, max_age)
  Dir.each_child(directory) do |entry|
    File.unlink(entry) if File.mtime(entry) < Time.now - max_age
  end
end
""",
}


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(Bundle.load(FOLDER), threads=1)


def test_its_hashes_are_right() -> None:
    Bundle.load(FOLDER)  # checks them


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in Path(FOLDER).iterdir()) < MAX_BYTES


def test_it_says_what_it_was_trained_on() -> None:
    said = json.loads((FOLDER / MANIFEST).read_text(encoding="utf-8"))
    training = said["training"]
    assert sum(training["docstring_code_pairs"].values()) >= 200_000
    assert len(training["docstring_code_pairs"]) >= 10
    assert {"figures", "date", "recipe", "packages"} <= training.keys()
    assert said["licence"] == "Apache-2.0"


def test_its_notice_names_every_package_and_licence() -> None:
    said = json.loads((FOLDER / MANIFEST).read_text(encoding="utf-8"))
    rows = [line.split("\t") for line in (FOLDER / "NOTICE").read_text(encoding="utf-8").splitlines() if "\t" in line]
    assert len(rows) == said["training"]["packages"]
    assert all(len(row) == 4 and row[3] for row in rows)


def test_its_notice_names_the_model_that_it_begins_with() -> None:
    begun = "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0)"
    assert begun in (FOLDER / "NOTICE").read_text(encoding="utf-8").splitlines()[0]
    assert begun in json.loads((FOLDER / MANIFEST).read_text(encoding="utf-8"))["source"]


def test_its_packages_are_the_manifests_at_the_manifests_versions() -> None:
    named = {tuple(line.split("\t")) for line in (FOLDER / "NOTICE").read_text().splitlines() if "\t" in line}
    assert named <= {(p.registry, p.name, p.version, p.licence) for p in read_manifest()}


def test_it_finds_obvious_things_without_their_words(embedder: Embedder) -> None:
    queries = embedder.embed_queries(list(FUNCTIONS))
    codes = np.concatenate(embedder.embed_code([(code, []) for code in FUNCTIONS.values()]))
    assert (queries @ codes.T).argmax(axis=1).tolist() == list(range(len(FUNCTIONS)))


def test_it_places_different_spellings_of_a_name_together(embedder: Embedder) -> None:
    camel, snake, other = embedder.embed_queries(["parseHttpDate", "parse_http_date", "draw_circle"])
    assert camel @ snake > 0.99
    assert camel @ other < 0.5
