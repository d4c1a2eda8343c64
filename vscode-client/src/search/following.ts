/** Follows a line of a file through a change of the file, whoever made it. */

/** Where a line is now, counted from 0; undefined if it is gone. Above and below the part of the file that changed, that is
 * certain. Inside of it, it is the line with the same text, however indented, or the one that was edited and had its place. */
export function follow(line: number, before: readonly string[], now: readonly string[]): number | undefined {
  const head = commonStart(before, now);
  if (line < head) {
    return line;
  }
  const tail = commonEnd(before, now, Math.min(before.length, now.length) - head);
  if (line >= before.length - tail) {
    return line + now.length - before.length;
  }
  const text = (before[line] ?? "").trim();
  const [were, are] = [linesWith(text, before, head, tail), linesWith(text, now, head, tail)];
  if (were.length === are.length) {
    return are[were.indexOf(line)];
  }
  if (are.length) {
    return are.reduce((nearest, each) => (Math.abs(each - line) < Math.abs(nearest - line) ? each : nearest));
  }
  return before.length === now.length ? line : undefined;
}

function commonStart(before: readonly string[], now: readonly string[]): number {
  const length = before.findIndex((line, number) => line !== now[number]);
  return length < 0 ? before.length : length;
}

function commonEnd(before: readonly string[], now: readonly string[], longest: number): number {
  let length = 0;
  while (length < longest && before.at(-1 - length) === now.at(-1 - length)) {
    length++;
  }
  return length;
}

/** The lines with a text between the first and the last so many. */
function linesWith(text: string, lines: readonly string[], head: number, tail: number): number[] {
  return lines.flatMap((line, number) => (number >= head && number < lines.length - tail && line.trim() === text ? [number] : []));
}
