/** A failure that a user can do something about: what is wrong, and the ways out. */

export interface Fix {
  title: string;
  command: string;
  arguments?: unknown[];
}

export class Problem extends Error {
  constructor(
    message: string,
    readonly fixes: readonly Fix[] = [],
  ) {
    super(message);
    this.name = "Problem";
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function fixesOf(error: unknown): readonly Fix[] {
  return error instanceof Problem ? error.fixes : [];
}

export const SHOW_LOG: Fix = { title: "Show Log", command: "meaning.showLog" };
export const RESTART: Fix = { title: "Restart", command: "meaning.restart" };
export const INSTALL: Fix = { title: "Install", command: "meaning.install" };

export function openSetting(name: string): Fix {
  return { title: "Open Settings", command: "workbench.action.openSettings", arguments: [name] };
}
