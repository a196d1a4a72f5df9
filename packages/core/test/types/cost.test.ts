/** Type-check cost of a graph in instantiations and types: counts, equal on every machine. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Compiled, type Consumer, createConsumerProject } from "../support/consumer-project.ts";

let project: Consumer;
beforeAll(async () => {
  project = await createConsumerProject();
});
afterAll(() => project.remove());

/** Cost of a program without the cost of its imports. */
async function getCost(
  name: string,
  imports: string,
  program: string,
): Promise<Pick<Compiled, "instantiations" | "types">> {
  const names = [...imports.matchAll(/import (?:\{([^}]*)\}|\* as (\w+))/g)].flatMap(([, some = "", all]) =>
    all === undefined ? some.split(",").map((one) => one.trim()) : [all],
  );
  const [alone, whole] = await Promise.all([
    project.compile(`${name}-alone`, `${imports}export const used = [${names.join(", ")}];\n`),
    project.compile(name, imports + program),
  ]);
  expect([...alone.errors, ...whole.errors]).toEqual([]);
  return { instantiations: whole.instantiations - alone.instantiations, types: whole.types - alone.types };
}

describe("type-check cost of a large graph", () => {
  test("100 nodes cost at most twice as much to type-check as 50, and no more than a plain machine of 60 states", async () => {
    const [fifty, hundred, machine] = await Promise.all([
      getCost("graph-50", graphImports, createGraph(50)),
      getCost("graph-100", graphImports, createGraph(100)),
      getCost("machine-60", machineImports, createMachineSource(60)),
    ]);
    expect(hundred.instantiations).toBeLessThanOrEqual(2 * fifty.instantiations);
    expect(hundred.types).toBeLessThanOrEqual(2 * fifty.types);
    expect(hundred.instantiations).toBeLessThanOrEqual(machine.instantiations);
    expect(hundred.types).toBeLessThanOrEqual(machine.types);
    expect(fifty.instantiations).toBeGreaterThan(0);
  });
});

const graphImports = `import { channel, commandTargets, defineGraph, defineState, edit, END, fanOut, goto, inputNode, route, START } from "@statewright/core";
import * as z from "zod";
`;

/** Graph with every kind of node and edge, in groups of ten: an input node, a policy, an edit, a route and commands. */
function createGraph(size: number): string {
  const indices = Array.from({ length: size }, (_, index) => index);
  const isTask = (index: number): boolean => index % 10 === 3;
  const getNextName = (index: number): string => {
    const next = isTask(index + 1) ? index + 2 : index + 1;
    return next < size ? `"n${next}"` : "END";
  };
  const createNode = (index: number): string => {
    switch (index % 10) {
      case 3:
        return `inputNode(z.object({ file: z.string(), size: z.number() }), async (_state, { input }) => ({
      findings: [{ file: input.file, severe: input.size > ${index} }],
    }))`;
      case 5:
        return `{
      run: async (state, { signal, step }) => ({ files: await step("read", async () => [...state.files, String(signal)]) }),
      retry: { attempts: 3 },
      timeoutMs: ${1_000 + index},
    }`;
      case 7:
        return `(state) => edit((draft) => { draft.verdict = state.findings.length > ${index} ? "fix" : "ship"; })`;
      case 8:
        return `(state) => (state.count > ${index} ? goto(${getNextName(index)}, { count: 1 }) : goto("n0"))`;
      default:
        return `(state) => ({ count: state.count + ${index}, findings: [{ file: state.files[0] ?? "", severe: false }] })`;
    }
  };
  const createEdge = (index: number): string => {
    switch (index % 10) {
      case 2:
        return `fanOut("n${index + 1}", (state) => state.files.map((file) => ({ file, size: state.count })), { otherwise: ${getNextName(index)} })`;
      case 6:
        return `route([${getNextName(index)}, END], (state) => (state.verdict === "fix" ? ${getNextName(index)} : END))`;
      case 8:
        return `commandTargets(${getNextName(index)}, "n0")`;
      default:
        return getNextName(index);
    }
  };
  return `const State = defineState({
  files: z.array(z.string()).default([]),
  findings: channel.list(z.object({ file: z.string(), severe: z.boolean() })),
  verdict: z.enum(["ship", "fix"]).nullable().default(null),
  count: z.number().default(0),
});
export const graph = defineGraph({ name: "many", state: State })
  .nodes({
${indices.map((index) => `    n${index}: ${createNode(index)},`).join("\n")}
  })
  .edges({
    [START]: "n0",
${indices.map((index) => `    n${index}: ${createEdge(index)},`).join("\n")}
  });
`;
}

const machineImports = `import { assign, fromPromise, setup } from "xstate";
`;

/** Typical machine: typed context and events, actions, guards and a named actor. */
function createMachineSource(size: number): string {
  const getState = (index: number): string => {
    const next = `"n${(index + 1) % size}"`;
    switch (index % 5) {
      case 1:
        return `{
      on: {
        add: { target: ${next}, actions: assign({ files: ({ context, event }) => [...context.files, event.file] }) },
        back: "n${index - 1}",
      },
    }`;
      case 2:
        return `{ on: { next: [{ target: ${next}, guard: "many" }, { target: "n0" }] } }`;
      case 3:
        return `{
      invoke: {
        src: "inspect",
        input: ({ context }) => ({ file: context.files[0] ?? "" }),
        onDone: { target: ${next}, actions: assign({ findings: ({ context, event }) => [...context.findings, event.output] }) },
        onError: "n0",
      },
    }`;
      default:
        return `{ entry: "count", on: { next: ${next} } }`;
    }
  };
  return `type Event = { type: "next" } | { type: "back" } | { type: "add"; file: string };
const inspect = fromPromise(async ({ input }: { input: { file: string } }) => ({ file: input.file, severe: false }));
export const machine = setup({
  types: {
    context: {} as { files: string[]; findings: { file: string; severe: boolean }[]; count: number },
    events: {} as Event,
  },
  actors: { inspect },
  actions: { count: assign({ count: ({ context }) => context.count + 1 }) },
  guards: { many: ({ context }) => context.files.length > 3 },
}).createMachine({
  id: "many",
  context: { files: [], findings: [], count: 0 },
  initial: "n0",
  states: {
${Array.from({ length: size }, (_, index) => `    n${index}: ${getState(index)},`).join("\n")}
  },
});
`;
}
