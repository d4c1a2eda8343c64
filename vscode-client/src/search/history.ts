/** The questions that led somewhere, the newest first. */

const REMEMBERED = 50;

export function remembered(history: readonly string[], query: string): string[] {
  const asked = query.trim();
  return asked === "" ? [...history] : [asked, ...history.filter((each) => each !== asked)].slice(0, REMEMBERED);
}
