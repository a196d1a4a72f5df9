/** Hovers and completions of the language service of TypeScript 5.9, which editors use. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEditor, type Editor } from "../support/editor.ts";
import { createTypeProject, type TypeProject } from "../support/type-project.ts";

const program = `import { commandTargets, createAgent, defineGraph, END, goto, run, START } from "statewright";
import { say, scriptedModel } from "@statewright/testing";
import { order, search, Shop, store } from "./shop.ts";
const start = defineGraph({ name: "shop", state: Shop });
export const graph = start
  .nodes({ read: (state) => (state.cart.length > 0 ? goto("check") : goto(END)), check: { run: () => undefined, /*policy*/ } })
  .edges({ [START]: "read", read: commandTargets("check", END), check: /*edge*/"" });
export const agent = createAgent({ name: "support", model: scriptedModel([say("Hello")]), tools: [search] });
export const handle = run(order, { store, context: { user: "ann" }, input: { amount: 1 } });
export const answer = agent.run({ input: "Hello" });
`;

let project: TypeProject;
let editor: Editor;
beforeAll(async () => {
  project = await createTypeProject();
  await project.write("src/shop.ts", readFileSync(new URL("mistakes/shop.ts", import.meta.url), "utf8"));
  await project.write("src/program.ts", program);
  editor = createEditor(project.folder, "src/program.ts");
});
afterAll(() => project.remove());

test.each([
  [".nodes({", 40],
  [".edges({", 24],
  ["agent = createAgent", 1],
  ["answer = agent", 6],
  ["handle = run", 20],
])("the hover of %s has at most %i lines [FX35]", (text, lines) => {
  const hover = editor.hover(program.indexOf(text) + (text.startsWith(".") ? 1 : 0));
  expect(hover).not.toBe("");
  expect(hover.split("\n").length).toBeLessThanOrEqual(lines);
});

test("the hover of an agent names its tools and no implementation [FX35]", () => {
  expect(editor.hover(program.indexOf("agent = createAgent"))).toMatch(/^const agent: Agent<.*"search"/);
});

test("the policy of a node completes its options, and no option of a tool node or an input node [FX35]", () => {
  const offered = editor.complete(program.indexOf("/*policy*/"));
  expect(offered).toEqual(
    ["cache", "defer", "effect", "idleTimeoutMs", "interrupts", "onError", "retry", "timeoutMs", "writes"].toSorted(),
  );
});
