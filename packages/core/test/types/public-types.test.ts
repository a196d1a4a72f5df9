/** The shipped declarations in a consumer's compiler: displayed types, nameable types and supported settings. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, expectTypeOf, test } from "vitest";
import type { Graph, GraphMachine } from "../../src/index.ts";
import { type Consumer, createConsumerProject, emitted } from "../support/consumer-project.ts";

let project: Consumer;
beforeAll(async () => {
  project = await createConsumerProject();
});
afterAll(() => project.remove());

const graphModule = `import { channel, defineGraph, defineState, END, fanOut, inputNode, START } from "@statewright/core";
import * as z from "zod";
const Review = defineState({ files: z.array(z.string()).default([]), findings: channel.list(z.string()) });
export const review = defineGraph({ name: "review", state: Review, interrupts: { ok: z.boolean() } })
  .nodes({
    collect: () => ({ files: ["a"] }),
    inspect: inputNode(z.string(), (_state, { input }) => ({ findings: [input] })),
    judge: () => undefined,
  })
  .edges({
    [START]: "collect",
    collect: fanOut("inspect", (state) => state.files, { otherwise: "judge" }),
    inspect: "judge",
    judge: END,
  });
`;

test("no published declaration contains an inferred machine type", async () => {
  const files = (await readdir(project.declarations, { recursive: true })).filter((name) => name.endsWith(".d.ts"));
  const shown = await Promise.all(
    files.map(async (name) => {
      const text = await readFile(join(project.declarations, name), "utf8");
      // XState types may be used in parameters, but not in return types.
      return /\b(StateMachine|MachineSnapshot|MachineConfig)<(?!\s*infer )/.test(text) ? [name] : [];
    }),
  );
  expect(files).toContain("index.d.ts");
  expect(shown.flat()).toEqual([]);
  expectTypeOf<Graph["machine"]>().toEqualTypeOf<GraphMachine>();
});

test("an exported graph has a nameable declaration type that lists its nodes and not their implementation", async () => {
  const { errors } = await project.compile("review", graphModule, emitted);
  const declaration = (await project.declarationOf("review")).replace(/\s+/g, " ");
  expect(errors).toEqual([]);
  expect(declaration).toContain('"collect" | "inspect" | "judge"');
  expect(declaration).not.toMatch(/xstate|InputNode|any\b/);
  expect(declaration.replaceAll('import("@statewright/core").', "").length).toBeLessThan(450);
});

test("the type of a durable machine names its context and output, not the machine", async () => {
  const program = `import { durableMachine } from "@statewright/core";
import { fromPromise, setup } from "xstate";
const machine = setup({ types: { input: { order: "" }, context: { paid: false } }, actors: { pay: fromPromise(async () => 1) } })
  .createMachine({ id: "order", context: { paid: false }, output: () => "done", initial: "pay", states: { pay: { type: "final" } } });
export const order = durableMachine(machine, { version: 1 });
`;
  const { errors } = await project.compile("order", program, emitted);
  const declaration = (await project.declarationOf("order")).replace(/\s+/g, " ");
  expect(errors).toEqual([]);
  expect(declaration).toContain("{ paid: boolean; }");
  expect(declaration).not.toContain("StateMachine");
});

test("a module with isolatedDeclarations can export a graph under an explicit type", async () => {
  const program = `import { defineGraph, defineState, END, type Graph, type GraphTypes, run, START } from "@statewright/core";
import * as z from "zod";
interface CountTypes extends GraphTypes {
  readonly state: { readonly count: number };
  readonly result: { readonly count: number };
  readonly input: { readonly count: number };
  readonly nodes: "more";
}
const Count = defineState({ count: z.number() });
export const count: Graph<CountTypes> = defineGraph({ name: "count", state: Count })
  .nodes({ more: (state) => ({ count: state.count + 1 }) })
  .edges({ [START]: "more", more: END });
export async function counted(from: number): Promise<number> {
  const { state } = await run(count, { input: { count: from }, breakpoints: { after: ["more"] } }).result;
  return state.count;
}
run(count, { input: { count: "1" } });
`;
  const { errors } = await project.compile("count", program, { ...emitted, isolatedDeclarations: true });
  expect(errors.map(({ message }) => message)).toEqual(["Type 'string' is not assignable to type 'number'."]);
});

test("a type error is found with and without the types of the platform", async () => {
  const program = `${graphModule}review.types?.state.files satisfies readonly number[] | undefined;\n`;
  const lines = program.split("\n").length - 1;
  for (const lib of [["es2023"], ["es2023", "dom"]]) {
    const { errors } = await project.compile(`lib-${lib.length}`, program, { lib });
    expect(errors.map(({ line }) => line)).toEqual([lines]);
  }
});
