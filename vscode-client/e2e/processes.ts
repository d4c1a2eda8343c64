/** The processes of a workbench, seen through /proc. */

import { readdirSync, readFileSync } from "node:fs";

export interface Seen {
  pid: number;
  parent: number;
  command: string;
}

function all(): Seen[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const parent = Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1]);
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
        return [{ pid: Number(name), parent, command }];
      } catch {
        return []; // It ended meanwhile.
      }
    });
}

/** The processes below one whose command line is of a kind. */
export function below(pid: number, command: RegExp): Seen[] {
  const processes = all();
  const family = new Set([pid]);
  for (let size = 0; size !== family.size; ) {
    size = family.size;
    processes.filter(({ parent }) => family.has(parent)).forEach((child) => family.add(child.pid));
  }
  return processes.filter((each) => family.has(each.pid) && command.test(each.command));
}
