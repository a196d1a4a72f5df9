import { expect, test } from "vitest";
import { getState, history, isStatewrightError, memoryStore, run, type Graph, type RunEvent } from "../../src/index.ts";
import { build } from "./build.ts";
import { chanceOf, specOf, type Traits } from "./generate.ts";
import { empty, interpret, type Spec, type State } from "./model.ts";

const tick = () => new Promise<void>((r) => setImmediate(r));
export async function delay(n: number) { for (let i = 0; i < n; i++) await (i % 3 === 2 ? tick() : Promise.resolve()); }
function innermost(error: unknown): string {
  let code = "?";
  for (let e: unknown = error; e instanceof Error; e = e.cause) if (isStatewrightError(e)) code = e.code;
  return code;
}
const plainState = ({ log, sum, rec, x }: State) => ({ log, sum, rec: { ...rec }, x });

export function compiled(spec: Spec, probe = {}): Graph | undefined {
  try { return build(spec, probe); } catch (error) {
    if (isStatewrightError(error, "invalid_graph")) return undefined;
    throw error;
  }
}

async function compare(seed: number, traits: Traits, maxConcurrency?: number) {
  const spec = specOf(seed, traits);
  const chance = chanceOf(seed + 1);
  const graph = compiled(spec, { wait: () => delay(chance.below(8)) });
  if (graph === undefined) return "invalid";
  const model = interpret(spec, {}, 12);
  const store = memoryStore();
  const handle = run(graph, { store, thread: "t", input: {}, maxSteps: 12, ...(maxConcurrency ? { maxConcurrency } : {}) } as never);
  const steps: { nodes: readonly string[]; next: readonly string[] }[] = [];
  const started: string[] = [];
  let started_: string[] = [];
  handle.on((e: RunEvent) => {
    if (e.within) return;
    if (e.type === "task.started") started_.push(e.node);
    if (e.type === "step.committed") {
      if (e.step > 0) { steps.push({ nodes: e.nodes, next: e.next }); started.push(started_.join()); }
      started_ = [];
    }
  });
  let error: string | undefined; let raw: unknown;
  let result: any;
  try { result = await handle.result; } catch (e) { error = innermost(e); raw = e; }
  const now = (await store.head("t")) === undefined ? { state: empty } : await getState(graph, { store, thread: "t" });
  const uniq = (l: readonly string[]) => [...new Set(l)];
  const got = { error, state: plainState(now.state as State), started, nodes: steps.map((s) => uniq(s.nodes)), next: steps.map((s) => uniq(s.next)) };
  const want = { error: model.error, state: plainState(model.state), started: model.steps.map((s) => s.tasks.join()), nodes: model.steps.map((s) => uniq(s.tasks)), next: model.steps.map((s) => uniq(s.next.length ? s.next : ["__end__"])) };
  try { expect(got).toEqual(want); } catch (e) { console.log(seed, JSON.stringify(traits), JSON.stringify(spec, null, 1), raw); throw e; }
  if (result) expect(plainState(result.state)).toEqual(plainState(model.state));
  return model.error ?? "done";
}

for (const traits of [{}, { subgraphs: true }] as Traits[])
  test(`reference ${JSON.stringify(traits)}`, async () => {
    const tally: Record<string, number> = {};
    const from = Number(process.env["FROM"] ?? 0);
    const count = Number(process.env["COUNT"] ?? 600);
    for (let seed = from; seed < from + count; seed++) {
      const r = await compare(seed, traits, seed % 4 === 0 ? 1 + (seed % 3) : undefined);
      tally[r] = (tally[r] ?? 0) + 1;
    }
    console.log(tally);
  });
