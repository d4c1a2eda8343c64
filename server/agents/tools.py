"""What an agent can ask: the tools' descriptions and arguments, which are the schemas that it sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..parse import KINDS
from ..search.query import MAX_QUERY

MAX_HITS = 50
MAX_BUDGET = 100_000
MAX_LINE = 100_000_000
DEFAULT_BUDGET = 12_000
"""Characters, some 3,000 tokens: five to ten functions whole, and no harm to anybody's context."""


class WrongArguments(ValueError):
    """What is wrong with the arguments, each by its name, in one line."""


def _as_list(value: Any) -> Any:
    """`python` and `python,go` for `["python", "go"]`: models write both."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


Texts = Annotated[list[str], BeforeValidator(_as_list)]
Kinds = Annotated[
    list[Annotated[str, Field(json_schema_extra={"enum": sorted(KINDS)})]],  # shown, and checked with the query
    BeforeValidator(_as_list),
]
Limit = Annotated[int, Field(ge=1, le=MAX_HITS, description="Most results.")]
Budget = Annotated[
    int,
    Field(
        ge=0,
        le=MAX_BUDGET,
        description="Most characters of code in the whole answer; 0 for places and signatures alone.",
    ),
]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SearchCode(_Arguments):
    """Find code in the workspace by what it does, in plain words, or by name: "where do we retry a failed upload",
    "parse_cron". Answers with path:lines, kind, name and the code of each function or class, best first. The index is
    brought up to date before each answer, so that your own edits are in it. Better than grep where you do not know the
    words that the code uses; a few lines of code make a question, too."""

    query: str = Field(
        min_length=1,
        max_length=MAX_QUERY,
        description="What the code does, or its name. A sentence is better than a word.",
    )
    limit: Limit = 8
    paths: Texts = Field([], description='Only these: globs or folders, relative to the workspace ("src/**", "*.go").')
    languages: Texts = Field([], description='Only these, by name ("python", "typescript") or file suffix ("rs").')
    kinds: Kinds = Field([], description="Only these.")
    scope: Literal["workspace", "org"] = Field(
        "workspace",
        description='"org" for all repositories that the user\'s organisation published, where it has such an index:'
        " what is in no folder here is answered by its signature.",
    )
    repositories: Texts = Field([], description='With the scope "org", only these: names or globs ("acme/*").')
    budget: Budget = DEFAULT_BUDGET


class SimilarCode(_Arguments):
    """Find code that does the same as the function or class at a place: duplicates, siblings, other implementations,
    what else to change. Answers as search_code does; the place itself is left out."""

    path: str = Field(min_length=1, description="The file, relative to the workspace or absolute.")
    line: int = Field(ge=1, le=MAX_LINE, description="A line of the function, counted from 1.")
    limit: Limit = 8
    budget: Budget = DEFAULT_BUDGET


TOOLS: Mapping[str, type[SearchCode] | type[SimilarCode]] = {"search_code": SearchCode, "similar_code": SimilarCode}

INSTRUCTIONS = (
    "Finds code of the user's workspace by meaning, on this machine. Ask search_code where something is done before you"
    " read or grep files one by one, and similar_code before you write another version of what may be there."
)

Asked = TypeVar("Asked", bound=_Arguments)


def description(tool: type[_Arguments]) -> str:
    """What the tool is for, as a model reads it."""
    return " ".join((tool.__doc__ or "").split())


def schema(tool: type[_Arguments]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without the titles that repeat the names."""
    whole = tool.model_json_schema()
    properties = {
        name: {key: value for key, value in of_one.items() if key != "title"}
        for name, of_one in whole["properties"].items()
    }
    kept = {key: value for key, value in whole.items() if key not in ("title", "description")}
    return {**kept, "properties": properties}


def read(tool: type[Asked], arguments: Mapping[str, Any]) -> Asked:
    """The arguments, checked. Raises WrongArguments."""
    try:
        return tool.model_validate(dict(arguments))
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False))
        raise WrongArguments("; ".join(wrong)) from None
