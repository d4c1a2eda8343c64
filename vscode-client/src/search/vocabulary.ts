/** The values that the filters `lang:` and `kind:` know. A test in `tests/vscode` holds them against the server's. */

export const LANGUAGES = [
  "python", "javascript", "typescript", "tsx", "java", "go", "ruby", "php", "rust", "c", "cpp", "csharp", "kotlin",
  "swift", "scala", "lua", "bash", "elixir", "haskell", "zig", "markdown", "text",
] as const;

export const KINDS = [
  "function", "method", "constructor", "property", "macro", "class", "struct", "enum", "interface", "trait", "object",
  "impl", "extension", "namespace", "type", "test", "module", "text",
] as const;
