"""A made-up tree of code, the same for the same numbers: four languages, functions with a doc, a body and names of
words that recur as they do in real code (a few often, most seldom)."""

from __future__ import annotations

import random
from pathlib import Path

VERBS = """add apply attach build cache cancel check clear close collect compare compile compress connect convert copy
count create decode delete detect dispatch download encode escape evict expand export extract fetch filter find flush
format generate group hash import index insert join limit list load lock log match merge migrate move normalize notify
open pack parse patch pause poll prune publish push read rebuild record release remove rename render repeat replace
report reset resolve restore resume retry rotate route save scan schedule search send serialize sign skip sort split
start stop store strip submit subscribe swap sync tokenize trace transform trim truncate unlock update upload validate
verify wait walk watch wrap write""".split()
NOUNS = """account address alias archive argument attachment balance batch block branch buffer bundle button cache
callback channel checksum chunk client cluster column commit config connection context cookie counter cron cursor
customer date deadline device directory document domain draft edge email endpoint entry error event expression feature
field file flag folder frame graph grid group handler header heap hook host image index inode interval invoice item
job journal key label layer lease ledger line link locale lock log mailbox manifest map message metric migration mirror
module mutex namespace node offset option order packet page parcel partition password patch path payload payment peer
permission pipeline pixel plugin policy pool port prefix price profile proxy query queue quota range record region
registry replica report request resource response retry role route row rule sample schema scope secret segment sensor
session shard shipment signal signature snapshot socket span stack stage stream string table tag task template tenant
thread ticket timer token topic trace transaction tree trigger tunnel upload user vector version volume voucher webhook
widget window worker zone""".split()

FUNCTIONS_PER_FILE = 20

_PYTHON = '''def {verb}_{noun}({other}, {third}=None):
    """{Verb} the {noun} of a {other}."""
    {third} = {third} or {other}.{noun}
    for {noun} in {third}.{verb2}_{third2}s({other}):
        if {noun}.is_{third2}:
            log.debug("{verb} {noun}: %s", {noun})
            return {noun}.{verb2}({number})
    raise LookupError("no {noun} to {verb} for this {other}")
'''
_JAVASCRIPT = """/** {Verb} the {noun} of a {other}. */
export async function {verb}{Noun}({other}, {third} = null) {{
  const {noun}s = await {other}.{verb2}{Third2}({{ limit: {number} }});
  if ({noun}s.length === 0) {{
    throw new Error(`no {noun} to {verb}`);
  }}
  return {noun}s.map(({noun}) => {noun}.{verb2}({third}));
}}
"""
_GO = """// {Verb}{Noun} is how to {verb} the {noun} of a {other}.
func {Verb}{Noun}({other} *{Other}, {third} {Third}) (*{Noun}, error) {{
	{noun}, err := {other}.{Verb2}{Third2}({number})
	if err != nil {{
		return nil, fmt.Errorf("{verb} {noun}: %w", err)
	}}
	{noun}.{Third} = {third}
	return {noun}, nil
}}
"""
_TYPESCRIPT = """/** {Verb}s the {noun} that a {other} asks for. */
export function {verb}{Noun}({other}: {Other}, {third}?: {Third}): {Noun} {{
  const found = {other}.{verb2}{Third2}({number});
  if (found === undefined) {{
    throw new MissingError("{noun}");
  }}
  return found.with{Third}({third});
}}
"""
_LANGUAGES = (("py", "", _PYTHON), ("js", "", _JAVASCRIPT), ("go", "package {noun}\n", _GO), ("ts", "", _TYPESCRIPT))


def write_tree(root: Path, functions: int, seed: int = 0) -> None:
    """So many functions, in files of FUNCTIONS_PER_FILE, in folders of ten files."""
    draw = random.Random(seed)
    for number in range(functions // FUNCTIONS_PER_FILE):
        ending, head, template = _LANGUAGES[number % len(_LANGUAGES)]
        folder = root / f"{NOUNS[number // 10 % len(NOUNS)]}_{number // 10}"
        folder.mkdir(parents=True, exist_ok=True)
        parts = [head.format(**_words(draw)), *(template.format(**_words(draw)) for _ in range(FUNCTIONS_PER_FILE))]
        (folder / f"{_one(draw, NOUNS)}_{number}.{ending}").write_text("\n".join(filter(None, parts)), "utf-8")


def questions(number: int, seed: int = 1) -> list[str]:
    """Sentences and names, in turn, about such a tree."""
    draw = random.Random(seed)
    shapes = ("how do we {verb} the {noun} of a {other}", "{verb}_{noun}", "where is a missing {noun} reported")
    return [shapes[i % len(shapes)].format(**_words(draw)) for i in range(number)]


def _words(draw: random.Random) -> dict[str, str]:
    words = {"number": str(draw.randrange(1, 5000))}
    for name, source in (("verb", VERBS), ("verb2", VERBS)):
        words[name] = _one(draw, source)
    for name in ("noun", "other", "third", "third2"):
        words[name] = _one(draw, NOUNS)
    return words | {name.title(): word.title() for name, word in words.items()}


def _one(draw: random.Random, words: list[str]) -> str:
    return words[int(len(words) * draw.random() ** 2)]
