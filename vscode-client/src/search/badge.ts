/** A small picture for each language. VS Code has icons of languages for files alone, not for the rows of a list. */

const BADGES: Record<string, readonly [letters: string, colour: string]> = {
  python: ["Py", "#3572a5"],
  javascript: ["JS", "#a8940a"],
  typescript: ["TS", "#3178c6"],
  tsx: ["TX", "#3178c6"],
  java: ["Ja", "#b07219"],
  go: ["Go", "#0093b0"],
  ruby: ["Rb", "#b02121"],
  php: ["PH", "#5d6ca6"],
  rust: ["Rs", "#a8623c"],
  c: ["C", "#5c6370"],
  cpp: ["C+", "#c4406d"],
  csharp: ["C#", "#3b8a3b"],
  kotlin: ["Kt", "#8a63d9"],
  swift: ["Sw", "#d9502f"],
  scala: ["Sc", "#c22d40"],
  lua: ["Lu", "#3d4fa8"],
  bash: ["$_", "#4b8b2b"],
  elixir: ["Ex", "#6e4a7e"],
  haskell: ["Hs", "#5e5086"],
  zig: ["Zg", "#bd7a12"],
  markdown: ["M", "#52718c"],
};
const OTHER = ["¶", "#6b7280"] as const;

/** The picture as a `data:` URI of an SVG. */
export function badge(language: string): string {
  const [letters, colour] = BADGES[language] ?? OTHER;
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16">' +
    `<rect width="16" height="16" rx="3" fill="${colour}"/>` +
    '<text x="8" y="11.5" font-family="sans-serif" font-size="9" font-weight="600" text-anchor="middle" fill="#fff">' +
    `${letters}</text></svg>`;
  return `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`;
}
