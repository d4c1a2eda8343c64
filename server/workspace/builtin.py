"""What is left out without anybody saying so: folders and files that hold nothing a person wrote to be read.

`!pattern` in .ignore or .meaningignore brings each of these back, but for the version control folders.
A name that is often a real source folder (`build`, `vendor`, `target`) counts only beside or around a sign that a tool
made it. Vendored code is not left out: it is code, and ranking puts it lower.
"""

from __future__ import annotations

from collections.abc import Callable, Collection


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VCS = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", ".sl", "CVS", "_darcs", ".pijul"})
"""Never entered, whatever a pattern says. `.git` may be a file (a worktree, a submodule)."""

_FOLDERS = _words(
    """
    node_modules bower_components jspm_packages .yarn .pnpm-store .npm .next .nuxt .svelte-kit .parcel-cache .turbo
    .angular .nyc_output .sass-cache .docusaurus
    __pycache__ __pypackages__ .venv .tox .nox .mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints
    .eggs .pytype .pyre site-packages htmlcov
    .gradle .mvn .bloop .metals .bsp .idea .vs .build .swiftpm DerivedData .dart_tool .bundle .stack-work
    dist-newstyle .cabal-sandbox elm-stuff .elixir_ls .zig-cache zig-cache zig-out .terraform .serverless .direnv
    .cache .ccls-cache .clangd __MACOSX
    """
)

_FOLDERS_BESIDE: dict[str, frozenset[str]] = {
    name: _words(signs)
    for name, signs in {
        "target": "Cargo.toml pom.xml build.sbt project.clj",
        "build": "build.gradle build.gradle.kts setup.py pubspec.yaml",
        "dist": "package.json setup.py pyproject.toml",
        "vendor": "composer.json",
        "_build": "mix.exs rebar.config dune-project",
        "deps": "mix.exs",
        "Pods": "Podfile",
        "Carthage": "Cartfile",
        "obj": ".csproj .fsproj .vbproj",
        "bin": ".csproj .fsproj .vbproj",
    }.items()
}
"""A folder's name -> files or endings, one of which has to lie beside it."""

CACHE_TAG = "CACHEDIR.TAG"
"""The one sign that counts by what it holds."""
_SIGNS_INSIDE = frozenset({"pyvenv.cfg", CACHE_TAG, "conda-meta", "CMakeCache.txt"})
"""An entry that says of the folder around it that a tool made it."""

_SIGNS = _SIGNS_INSIDE.union(*_FOLDERS_BESIDE.values())
_PROJECT_ENDINGS = (".csproj", ".fsproj", ".vbproj")

_NAMES = _words(
    """
    package-lock.json npm-shrinkwrap.json pnpm-lock.yaml bun.lockb go.sum go.work.sum package.resolved
    cartfile.resolved packages.lock.json gradle.lockfile .terraform.lock.hcl stack.yaml.lock cabal.project.freeze
    .ds_store thumbs.db .env
    """
)
"""Lock files (those without `.lock`), secrets and litter of the desktop; whole names in lower case."""

_ENDINGS = _words(
    """
    lock log map snap orig rej bak swp swo pid
    png jpg jpeg gif bmp ico icns webp avif heic tif tiff psd ai eps svg svgz xcf sketch fig drawio
    mp3 mp4 m4a m4v wav ogg oga ogv flac aac avi mov mkv webm mid midi
    ttf otf woff woff2 eot pfb
    zip gz tgz bz2 xz zst lz4 br 7z rar tar jar war ear aar whl egg gem nupkg deb rpm apk ipa dmg iso msi cab crate vsix
    pdf doc docx xls xlsx ppt pptx odt ods odp epub mobi
    o obj a lib so dylib dll exe pdb ilk class pyc pyo pyd beam wasm node rlib rmeta hi dex elc nib
    bin dat db sqlite sqlite3 mdb parquet arrow feather avro orc npy npz pkl pickle h5 hdf5 mat rds rdata
    onnx pth ckpt safetensors gguf tflite pb tfrecord
    pem key crt cer der p12 pfx jks keystore gpg
    po pot mo xlf strings
    fbx blend glb gltf stl unity3d uasset
    """
)
"""What follows a file name's last dot, in lower case: pictures, sound, fonts, archives, documents, object code, data,
models, keys, translations."""

_LONG_ENDINGS = (
    ".min.js",
    ".min.mjs",
    ".min.css",
    ".bundle.js",
    ".chunk.js",
    ".pb.go",
    "_pb2.py",
    "_pb2_grpc.py",
    "_pb2.pyi",
    ".pb.cc",
    ".pb.h",
    ".g.dart",
    ".freezed.dart",
    ".designer.cs",
    ".g.cs",
)
"""Endings with more than one part: minified code, and what code generators write."""

_DATA_ENDINGS = _words("csv tsv json jsonl ndjson json5 geojson topojson xml plist sql txt yaml yml html htm ipynb har")
DATA_BYTES = 100_000
"""A larger file in one of the formats that also hold data is data."""


def signs(names: Collection[str]) -> frozenset[str]:
    """Of a folder's entries those that tell something about folders: names, and endings such as `.csproj`."""
    found = _SIGNS.intersection(names)
    endings = {e for e in _PROJECT_ENDINGS if any(name.endswith(e) for name in names)}
    return found | endings


def is_sign(name: str) -> bool:
    """Whether a file of this name can change what is said of folders beside or around it."""
    return bool(signs((name,)))


def leaves_out(name: str, is_dir: bool, beside: frozenset[str]) -> bool:
    """Whether an entry is left out by its name, with these `signs` beside it."""
    if is_dir:
        return name in _FOLDERS or name.endswith(".egg-info") or not beside.isdisjoint(_FOLDERS_BESIDE.get(name, ()))
    lower = name.lower()
    return _ending(lower) in _ENDINGS or lower in _NAMES or lower.endswith(_LONG_ENDINGS)


def made_by_a_tool(inside: frozenset[str], is_cache_tag: Callable[[str], bool]) -> bool:
    """Whether a folder with these `signs` among its entries is an environment, a cache or a build.

    `is_cache_tag` looks into the entry of that name, for anybody may call a file CACHEDIR.TAG.
    """
    found = inside & _SIGNS_INSIDE
    return bool(found - {CACHE_TAG}) or (bool(found) and is_cache_tag(CACHE_TAG))


def is_data(name: str, size: int) -> bool:
    """Whether a file of `size` bytes is a data dump rather than something to read."""
    return size > DATA_BYTES and _ending(name.lower()) in _DATA_ENDINGS


def _ending(name: str) -> str:
    return name.rpartition(".")[2] if "." in name else ""
