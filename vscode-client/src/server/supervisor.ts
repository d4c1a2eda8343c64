/** Keeps one server running: started when it is needed, and again, ever more slowly, when it crashes. */

import { Problem, RESTART, SHOW_LOG } from "../problem";

export interface Started<Client> {
  client: Client;
  stop: () => Promise<void>;
}

export type State =
  | { kind: "stopped" }
  | { kind: "starting" }
  | { kind: "running" }
  /** It crashed, and will be started again. */
  | { kind: "waiting" }
  | { kind: "failed"; error: unknown };

export interface Observer {
  changed: (state: State) => void;
  /** It crashed for the first time, and will be started again. */
  crashed: () => void;
  /** It crashed too often, and stays down until somebody starts it. */
  gaveUp: (error: Problem) => void;
}

export interface Pace {
  /** Milliseconds before each start after a crash. When they are used up, it stays down. */
  delays: readonly number[];
  /** A crash is forgotten after so many milliseconds. */
  forget: number;
}

const PACE: Pace = { delays: [200, 1_000, 3_000, 10_000, 30_000], forget: 10 * 60_000 };

export class Supervisor<Client> {
  private latest: State = { kind: "stopped" };
  private current: Promise<Started<Client>> | undefined;
  /** Counts starts, so that news of an earlier server is known as such. */
  private generation = 0;
  private crashes: number[] = [];
  private told = false;
  private stopWaiting: (() => void) | undefined;

  /** `launch` is given what to call when the server that it started, and handed back, ends by itself. */
  constructor(
    private readonly launch: (crashed: () => void) => Promise<Started<Client>>,
    private readonly observer: Observer,
    private readonly pace: Pace = PACE,
  ) {}

  get state(): State {
    return this.latest;
  }

  /** The client of the server, which is started if it is down. */
  ensure(): Promise<Client> {
    if (!this.current) {
      this.crashes = [];
      this.begin(0);
    }
    return this.ready();
  }

  /** The client of the server that runs or is on its way. Rejects if it is down: to start it is for `ensure`. */
  async ready(): Promise<Client> {
    while (this.current) {
      const awaited = this.current;
      try {
        return (await awaited).client;
      } catch (error) {
        if (!this.isSuperseded(awaited)) {
          throw error;
        }
      }
    }
    throw this.latest.kind === "failed" ? this.latest.error : new Problem("The search server is not running.", [RESTART]);
  }

  async restart(): Promise<Client> {
    await this.stop();
    return this.ensure();
  }

  async stop(): Promise<void> {
    const running = this.current;
    this.generation++;
    this.current = undefined;
    this.stopWaiting?.();
    this.become({ kind: "stopped" });
    await running?.then(
      (started) => started.stop(),
      () => undefined,
    );
  }

  /** Whether another start came after this one. */
  private isSuperseded(start: Promise<Started<Client>>): boolean {
    return this.current !== undefined && this.current !== start;
  }

  private begin(delay: number): void {
    const generation = ++this.generation;
    this.become({ kind: delay ? "waiting" : "starting" });
    this.current = this.start(generation, delay);
    this.current.then(
      () => generation === this.generation && this.become({ kind: "running" }),
      (error: unknown) => generation === this.generation && this.notStarted(error),
    );
  }

  private async start(generation: number, delay: number): Promise<Started<Client>> {
    if (delay) {
      await this.sleep(delay);
      this.checkWanted(generation);
      this.become({ kind: "starting" });
    }
    const started = await this.launch(() => generation === this.generation && this.fell());
    if (generation !== this.generation) {
      await started.stop();
    }
    this.checkWanted(generation);
    return started;
  }

  private checkWanted(generation: number): void {
    if (generation !== this.generation) {
      throw new Problem("The search server was stopped.", [RESTART]);
    }
  }

  /** A first start that fails will fail again; one after a crash may be a matter of time. */
  private notStarted(error: unknown): void {
    if (this.crashes.length) {
      this.fell();
    } else {
      this.fail(error);
    }
  }

  private fell(): void {
    const now = Date.now();
    this.crashes = [...this.crashes.filter((then) => now - then < this.pace.forget), now];
    const delay = this.pace.delays[this.crashes.length - 1];
    if (delay === undefined) {
      const error = new Problem(`The search server stopped ${this.crashes.length} times. It is not started again.`, [RESTART, SHOW_LOG]);
      this.fail(error);
      this.observer.gaveUp(error);
      return;
    }
    this.begin(delay);
    if (!this.told) {
      this.told = true;
      this.observer.crashed();
    }
  }

  private fail(error: unknown): void {
    this.current = undefined;
    this.become({ kind: "failed", error });
  }

  private become(state: State): void {
    this.latest = state;
    this.observer.changed(state);
  }

  private sleep(milliseconds: number): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, milliseconds);
      this.stopWaiting = () => {
        clearTimeout(timer);
        done();
      };
    });
  }
}
