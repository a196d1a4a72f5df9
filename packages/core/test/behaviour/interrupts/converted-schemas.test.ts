/** Conversions to JSON Schema: a schema is converted once, whatever the number of graphs and runs. */
import { expect, test } from "vitest";
import { defineGraph, defineState, END, memoryStore, resume, run, type Schema, START } from "../../../src/index.ts";

/** A schema that counts its conversions to JSON Schema. */
function createCountedSchema(): { readonly schema: Schema<string>; readonly count: () => number } {
  let conversions = 0;
  const standard = {
    version: 1 as const,
    vendor: "test",
    validate: (value: unknown) =>
      typeof value === "string" ? { value } : { issues: [{ message: "expected a text" }] },
    jsonSchema: {
      input: () => {
        conversions += 1;
        return { type: "string" };
      },
      output: () => ({ type: "string" }),
    },
  };
  return { schema: { "~standard": standard }, count: () => conversions };
}

test("the answer schema of an interrupt and the schema of a channel are converted once in any number of runs [FX100]", async () => {
  const [answer, channel] = [createCountedSchema(), createCountedSchema()];
  const graph = defineGraph({
    name: "asking",
    state: defineState({ text: channel.schema }),
    interrupts: { name: answer.schema },
  })
    .nodes({ ask: async (_state, { interrupt }) => ({ text: await interrupt("name") }) })
    .edges({ [START]: "ask", ask: END });
  const store = memoryStore();
  for (const thread of ["a", "b", "c"]) {
    const waiting = await run(graph, { store, thread, input: { text: "" } }).result;
    expect(waiting).toMatchObject({ status: "waiting", interrupts: [{ schema: { type: "string" } }] });
    const [interrupt] = waiting.status === "waiting" ? waiting.interrupts : [];
    await resume(graph, { store, thread, answers: { [interrupt?.id ?? ""]: "Ada" } }).result;
  }
  expect([answer.count(), channel.count()]).toEqual([1, 1]);
});
