import * as z from "zod";
import { END as ENDS, START, defineGraph, defineState, ephemeral, type Graph, goto, gotos, join, list, overwrite, record, reduce, route, send, sends, subgraph, task } from "../../src/index.ts";
import { bodyOf, chosen, type Edge, items, type NodeSpec, type Spec, type State } from "./model.ts";

export const sharedState = () => defineState({
  log: list(z.string()),
  sum: reduce(z.number().default(0), (sum: number, add: number) => sum + add),
  rec: record(z.number()),
  x: z.number().default(0),
  eph: ephemeral(z.number()),
});

/** What tests put around bodies. */
export interface Probe {
  alive?: () => boolean;
  began?: (node: string, state: State, input: number | undefined) => void;
  wait?: (node: string, state: State, input: number | undefined) => Promise<void> | void;
  ended?: (node: string, state: State, input: number | undefined) => void;
}

export function build(spec: Spec, probe: Probe = {}, name = "g", path = ""): Graph {
  const ask = { q0: z.object({ nonce: z.string(), value: z.number() }), q1: z.object({ nonce: z.string(), value: z.number() }) };
  const run = (node: NodeSpec) => async (state: State, runtime: never) => {
    const { input, interrupt } = runtime as { input?: number; interrupt: (key: string, shown: unknown) => Promise<{ nonce: string; value: number }> };
    if (probe.alive?.() === false) await new Promise(() => {});
    probe.began?.(node.name, state, input);
    const wait = probe.wait?.(node.name, state, input);
    if (wait !== undefined) await wait;
    const answers: number[] = [];
    for (let k = 0; k < node.asks; k++) {
      const nonce = [path, node.name, state.log.length, input ?? "-", k].join("|");
      const answer = await interrupt(`q${k}`, { payload: nonce });
      if (answer.nonce !== nonce) throw new Error(`the answer to ${answer.nonce} was given to ${nonce}`);
      answers.push(answer.value);
    }
    if (probe.alive?.() === false) await new Promise(() => {});
    const { writes, commands } = bodyOf(node, state, input, answers);
    probe.ended?.(node.name, state, input);
    const parts = writes.map((write) => ({ ...write, ...(write.log !== undefined && "over" in write.log ? { log: overwrite((write.log as { over: string[] }).over) } : {}) }));
    const all = [...parts, ...commands.map((command) => ("goto" in command ? goto(command.goto) : send(command.send, command.input)))];
    return all.length === 1 ? all[0] : all;
  };
  const nodes = Object.fromEntries(spec.nodes.map((node) => {
    if (node.kind === "task") return [node.name, task(z.number(), run(node) as never, { defer: node.defer })];
    if (node.kind === "sub") {
      const body = subgraph(build(node.inner as Spec, probe, `inner_${node.name}`, `${path}/${node.name}`) as never, {
        input: ((state: State) => ({ sum: state.sum })) as never,
        output: ((out: State) => ({ log: [`${node.name}{${out.log.join()}}`], sum: out.sum % 5 })) as never,
        persistence: node.persistence ?? "per-call",
      });
      return [node.name, { run: body, defer: node.defer }];
    }
    return [node.name, { run: run(node), defer: node.defer }];
  }));
  const edge = (of: Edge): unknown => {
    switch (of.kind) {
      case "to": return of.targets.length === 1 ? of.targets[0] : of.targets;
      case "join": return join(of.target);
      case "gotos": return gotos(...of.targets);
      case "route": return route(of.targets, ((state: State) => of.many ? chosen(of, state) : chosen(of, state)[0]) as never, { many: of.many as never });
      case "sends": return sends(of.target, ((state: State) => items(of, state)) as never, of.otherwise === undefined ? {} : { otherwise: of.otherwise as never });
    }
  };
  const edges = Object.fromEntries([[START, edge(spec.start)], ...spec.nodes.map((node) => [node.name, edge(node.edge)] as const)]);
  const hasAsks = (s: Spec): boolean => s.nodes.some((node) => node.asks > 0);
  return defineGraph({ name, state: sharedState(), ...(hasAsks(spec) ? { interrupts: ask } : {}) }).nodes(nodes as never).edges(edges as never) as unknown as Graph;
}
export { ENDS };
