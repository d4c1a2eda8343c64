import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Problem } from "../src/problem";
import { Supervisor } from "../src/server/supervisor";

const DELAY = 5;
const LONG = 10 * DELAY;

/** Servers that live and die as the test says. */
class Servers {
  starts = 0;
  stops = 0;
  tellings: string[] = [];
  states: string[] = [];
  failure: Error | undefined;
  crash: () => void = () => assert.fail("none runs");
  readonly supervisor = new Supervisor<number>(
    (crashed) => {
      this.starts++;
      this.crash = crashed;
      const stop = () => {
        this.stops++;
        return Promise.resolve();
      };
      return this.failure ? Promise.reject(this.failure) : Promise.resolve({ client: this.starts, stop });
    },
    {
      changed: (state) => this.states.push(state.kind),
      crashed: () => this.tellings.push("crashed"),
      gaveUp: () => this.tellings.push("gave up"),
    },
    { delays: [DELAY, DELAY, DELAY], forget: 60_000 },
  );
}

test("a server is started when it is needed, and once", async () => {
  const servers = new Servers();
  assert.deepEqual(await Promise.all([servers.supervisor.ensure(), servers.supervisor.ensure()]), [1, 1]);
  assert.deepEqual(servers.states, ["starting", "running"]);
});

test("nothing is started by asking for what is not there", async () => {
  const servers = new Servers();
  await assert.rejects(servers.supervisor.ready(), Problem);
  assert.equal(servers.starts, 0);
});

test("after a crash there is a new one, and who asks meanwhile waits for it", async () => {
  const servers = new Servers();
  await servers.supervisor.ensure();
  servers.crash();
  assert.equal(servers.supervisor.state.kind, "waiting");
  assert.equal(await servers.supervisor.ready(), 2);
});

test("crashes are told once, and have an end", async () => {
  const servers = new Servers();
  await servers.supervisor.ensure();
  for (let crash = 0; crash < 3; crash++) {
    servers.crash();
    await servers.supervisor.ready();
  }
  assert.deepEqual(servers.tellings, ["crashed"]);
  servers.crash();
  await sleep(LONG);
  assert.equal(servers.starts, 4);
  assert.deepEqual(servers.tellings, ["crashed", "gave up"]);
  assert.equal(servers.supervisor.state.kind, "failed");
  assert.equal(await servers.supervisor.ensure(), 5);
});

test("a server that does not come up after a crash is tried as often as one that crashes, no more", async () => {
  const servers = new Servers();
  await servers.supervisor.ensure();
  servers.failure = new Error("no such file");
  servers.crash();
  await sleep(2 * LONG);
  assert.equal(servers.starts, 4);
  assert.equal(servers.supervisor.state.kind, "failed");
});

test("a first start that fails says why, and is not repeated by itself", async () => {
  const servers = new Servers();
  servers.failure = new Error("no Python");
  await assert.rejects(servers.supervisor.ensure(), /no Python/);
  await assert.rejects(servers.supervisor.ready(), /no Python/);
  await sleep(LONG);
  assert.equal(servers.starts, 1);
});

test("a restart ends the old server, whose end is no crash", async () => {
  const servers = new Servers();
  await servers.supervisor.ensure();
  const crashOfTheFirst = servers.crash;
  assert.equal(await servers.supervisor.restart(), 2);
  crashOfTheFirst();
  assert.equal(servers.supervisor.state.kind, "running");
  assert.equal(servers.stops, 1);
});

test("a stop while it waits for another start is the end of it", async () => {
  const servers = new Servers();
  await servers.supervisor.ensure();
  servers.crash();
  await servers.supervisor.stop();
  await sleep(LONG);
  assert.equal(servers.starts, 1);
  assert.equal(servers.supervisor.state.kind, "stopped");
});
