/**
 * A process to be killed: it lives through random programs over SQLite files, one after the other, and goes on where the
 * process before it died. Arguments: a folder, the first program. Says `ready`, and what each program came to.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import {
  getState,
  isStatewrightError,
  type OpenInterrupt,
  resume,
  run,
  type Store,
  systemWorld,
} from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import { type Outside, type SimulatedProgram, uninterrupted, withoutLost } from "@statewright/testing";
import { programOf } from "../simulation/create-program.ts";
import { randomProgram } from "../simulation/random-program.ts";

/** What a line of this process says. */
export type KillLine =
  | { readonly kind: "ready" }
  | { readonly kind: "done"; readonly program: number; readonly wrong: readonly string[] };

interface Line {
  readonly key: string;
  readonly once: boolean;
  readonly value: unknown;
}

const thread = "simulated";
const real = systemWorld();
/** Waits between attempts are short: nobody looks at a clock here. */
const world = {
  ...real,
  schedule: { ...real.schedule, after: (ms: number, work: () => void) => real.schedule.after(ms / 50, work) },
};

/** The world outside is a file that no crash takes back. */
function outsideIn(file: string): Outside & { readonly lines: () => readonly Line[] } {
  const lines = (): readonly Line[] =>
    existsSync(file)
      ? readFileSync(file, "utf8")
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as Line)
      : [];
  const pause = (): Promise<void> => new Promise((resolve) => real.schedule.soon(resolve));
  return {
    lines,
    happened: (key) => lines().find((line) => line.key === key),
    act: async (key, work, { effect } = {}) => {
      await pause();
      const value = work();
      appendFileSync(file, `${JSON.stringify({ key, once: effect === "once", value })}\n`);
      await pause();
      return value;
    },
  };
}

async function liveThrough(program: SimulatedProgram, store: Store, outside: Outside): Promise<"done" | "in doubt"> {
  const { graph, answer } = program;
  for (;;) {
    const begun = (await store.head(thread)) !== undefined;
    const { interrupts, status } = begun
      ? await getState(graph, { store, thread })
      : { interrupts: [] as readonly OpenInterrupt[], status: undefined };
    if (status === "done") return "done";
    const answers = Object.fromEntries(
      interrupts.map((question) => [question.id, answer?.(question, outside.happened)]),
    );
    try {
      if (begun) await resume(graph, { store, thread, world, answers }).result;
      else await run(graph, { store, thread, world }).result;
    } catch (error) {
      // A step cannot ask a person whether it happened: its run ends there.
      if (isStatewrightError(error) && /: step .* had started when its process died/.test(error.message))
        return "in doubt";
      throw error;
    }
  }
}

async function oneProgram(folder: string, seed: number): Promise<readonly string[]> {
  const outside = outsideIn(join(folder, `${seed}.ndjson`));
  const store = sqliteStore(join(folder, `${seed}.db`), { durability: "normal", world });
  // A fork is for the simulator: here the run itself is enough.
  const { blocks } = randomProgram(seed);
  const make = programOf({ blocks });
  const program = make(outside);
  const end = await liveThrough(program, store, outside);
  const wrong: string[] = [];
  const times = new Map<string, number>();
  const lines = outside.lines();
  for (const { key, once } of lines) {
    times.set(key, (times.get(key) ?? 0) + 1);
    if (once && times.get(key) === 2) wrong.push(`I2 ${key} happened twice`);
  }
  const whole = await uninterrupted(make);
  if (end === "done") {
    const { state } = await getState(program.graph, { store, thread });
    if (JSON.stringify(withoutLost(state)) !== JSON.stringify(withoutLost(whole.state)))
      wrong.push("I3 the state is another");
    for (const key of whole.effects.keys()) if (!times.has(key)) wrong.push(`I2 ${key} never happened`);
    for (const key of times.keys())
      if (!whole.effects.has(key)) wrong.push(`I3 ${key} happened, and does not without kills`);
  }
  let next = 1;
  for (let page = await store.events(thread, { after: 0, limit: 100 }); page.length > 0; ) {
    for (const event of page) {
      const seq = "checkpoint" in event ? event.checkpoint.seq : event.fact.seq;
      if (seq !== next) wrong.push(`I4 the durable event ${seq} stands where ${next} is due`);
      next = seq + 1;
    }
    page = await store.events(thread, { after: next - 1, limit: 100 });
  }
  const { faults } = await store.verify();
  if (faults.length > 0) wrong.push(`I5 ${JSON.stringify(faults)}`);
  store.close();
  return wrong;
}

function say(line: KillLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const [folder = "", first = "0"] = process.argv.slice(2);
say({ kind: "ready" });
for (let program = Number(first); ; program++) say({ kind: "done", program, wrong: await oneProgram(folder, program) });
