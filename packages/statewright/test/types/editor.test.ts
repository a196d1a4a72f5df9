/** Hovers and completions of the language services of TypeScript 5.9 and 7, which editors use. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEditor, type Editor } from "../support/editor.ts";
import { type CompilerName, compilers, createTypeProject, type TypeProject } from "../support/type-project.ts";

const program = `import { commandTargets, createAgent, defineGraph, END, goto, type Graph, type GraphTypesOf, resume, run, START } from "statewright";
import { say, scriptedModel } from "@statewright/testing";
import { order, search, Shop, store } from "./shop.ts";
const start = defineGraph({ name: "shop", state: Shop });
export const graph = start
  .nodes({ read: (state) => (state.cart.length > 0 ? goto("check") : goto(END)), check: { run: () => undefined, /*policy*/ } })
  .edges({ [START]: "read", read: commandTargets("check", END), check: /*edge*/"" });
export const agent = createAgent({ name: "support", model: scriptedModel([say("Hello")]), tools: [search] });
export const handle = run(order, { store, context: { user: "ann" }, input: { amount: 1 } });
export const answer = agent.run({ input: "Hello" });
export const sameOrder = order;
interface OrderTypes extends GraphTypesOf<typeof order> {}
export const named: Graph<OrderTypes> = order;
export const namedHandle = run(named, { store, context: { user: "ann" }, input: { amount: 1 } });
export const resumed = resume(named, { store, thread: "t", context: { user: "ann" }, answers: { approve: { ok: true } } });
`;

/** Bodies with an unfinished command. Each is the node \`read\` of a graph with the nodes \`check\` and \`pack\`. */
const gotoBodies = {
  "a body without parameters": '() => goto("")',
  "one of two commands": '(state) => (state.cart.length > 0 ? goto("") : goto(END))',
  "a command with an update":
    'async (state) => { if (state.total > 3) return goto("", { total: 3 }); return { total: 0 }; }',
  "a list": '(state) => [{ total: state.total }, goto("")]',
  "a node with a policy": '{ run: (state) => (state.total > 3 ? goto("") : undefined), timeoutMs: 1_000 }',
  "an error handler": '{ run: () => undefined, onError: () => goto("") }',
};
const sendBodies = {
  "a body without parameters": '() => send("", { item: "tea", count: 1 })',
  "a list": '(state) => [send("", { item: "tea", count: state.total })]',
  "a conditional command": 'async (state) => (state.total > 3 ? send("", { item: "tea", count: 1 }) : undefined)',
};
const bodies = [...Object.values(gotoBodies), ...Object.values(sendBodies)];
const commands = `import { call } from "@statewright/testing";
import { defineGraph, END, goto, inputNode, send } from "statewright";
import { Item, search, Shop } from "./shop.ts";
const start = defineGraph({ name: "shop", state: Shop });
start.nodes({ read: (state) => ({ /*update*/ }) });
call(search, { /*args*/ });
${bodies
  .map(
    (body) =>
      `start.nodes({\n  read: ${body},\n  check: (state) => ({ total: state.cart.length }),\n  pack: inputNode(Item, () => undefined),\n});\n`,
  )
  .join("")}`;
/** Unfinished edges of the node `read`, and the names that each may take. */
const edges = {
  '""': ["__end__", "check", "read"],
  '["check", ""]': ["__end__", "check", "read"],
  'join("")': ["__end__", "check", "read"],
  'route(["check", END], () => "")': ["__end__", "check"],
  'fanOut("", () => [{ item: "tea", count: 1 }], { otherwise: END })': ["pack"],
  'fanOut("pack", () => [], { otherwise: "" })': ["__end__", "check", "read"],
};
const edgeProgram = `import { defineGraph, END, fanOut, inputNode, join, route, START } from "statewright";
import { Item, Shop } from "./shop.ts";
const start = defineGraph({ name: "shop", state: Shop }).nodes({
  read: () => undefined,
  check: () => undefined,
  pack: inputNode(Item, () => undefined),
});
${Object.keys(edges)
  .map((edge) => `start.edges({ [START]: "read", read: ${edge}, check: END, pack: END });\n`)
  .join("")}`;
/** Position in the empty name of the command of a body. */
const findName = (body: string): number => commands.indexOf(body) + body.search(/(goto|send)\(""/) + 'goto("'.length;

let project: TypeProject;
beforeAll(async () => {
  project = await createTypeProject();
  await project.write("src/shop.ts", readFileSync(new URL("mistakes/shop.ts", import.meta.url), "utf8"));
  await project.write("src/program.ts", program);
  await project.write("src/commands.ts", commands);
  await project.write("src/edges.ts", edgeProgram);
});
afterAll(() => project.remove());

describe.each(Object.keys(compilers) as CompilerName[])("%s", (compiler) => {
  let editor: Editor;
  let commandEditor: Editor;
  let edgeEditor: Editor;
  beforeAll(async () => {
    editor = await createEditor(compiler, project.folder, "src/program.ts");
    commandEditor = await createEditor(compiler, project.folder, "src/commands.ts");
    edgeEditor = await createEditor(compiler, project.folder, "src/edges.ts");
  });
  afterAll(() => Promise.all([editor.close(), commandEditor.close(), edgeEditor.close()]));

  test.each([
    [".nodes({", 21],
    [".edges({", 18],
    ["sameOrder = order", 18],
    ["agent = createAgent", 1],
    ["answer = agent", 6],
    ["handle = run", 18],
    ["named: Graph", 1],
    ["namedHandle = run", 1],
    ["resumed = resume", 1],
  ])("the hover of %s has at most %i lines [FX35]", async (text, lines) => {
    const hover = await editor.hover(program.indexOf(text) + (text.startsWith(".") ? 1 : 0));
    expect(hover).not.toBe("");
    expect(hover.split("\n").length).toBeLessThanOrEqual(lines);
  });

  test("the hovers of a graph and of its run begin with the name, the nodes and the interrupts [FX35]", async () => {
    const names = '<"order", "(pay" \\| "ship|ship" \\| "pay)", "approve" \\| "name", never, ';
    for (const [text, type] of [
      ["sameOrder = order", "Graph"],
      ["handle = run", "RunOf"],
    ] as const)
      expect(await editor.hover(program.indexOf(text))).toMatch(
        new RegExp(`^const \\w+: ${type}<GraphTypesWithNodes${names}`),
      );
  });

  test("the hovers of a graph with a named interface and of its run show this name [FX35]", async () => {
    expect(await editor.hover(program.indexOf("named: Graph"))).toBe("const named: Graph<OrderTypes>");
    expect(await editor.hover(program.indexOf("namedHandle = run"))).toBe("const namedHandle: RunOf<OrderTypes>");
    expect(await editor.hover(program.indexOf("resumed = resume"))).toBe("const resumed: RunOf<OrderTypes>");
  });

  test("the hover of an agent names its tools and no implementation [FX35]", async () => {
    expect(await editor.hover(program.indexOf("agent = createAgent"))).toMatch(/^const agent: Agent<.*"search"/);
  });

  test("the policy of a node completes its options, and no option of a tool node or an input node [FX35]", async () => {
    const offered = await editor.complete(program.indexOf("/*policy*/"));
    expect(offered).toEqual(
      ["cache", "defer", "effect", "idleTimeoutMs", "interrupts", "onError", "retry", "timeoutMs", "writes"].toSorted(),
    );
  });

  test("the update that a body returns completes channels, and no part of a command [FX35]", async () => {
    expect(await commandEditor.complete(commands.indexOf("/*update*/"))).toEqual([
      "cart",
      "messages",
      "notes",
      "total",
      "verdict",
    ]);
  });

  test("a call of a tool completes its arguments [FX34]", async () => {
    expect(await commandEditor.complete(commands.indexOf("/*args*/"))).toEqual(["limit", "query"]);
  });

  test.each(Object.entries(gotoBodies))(
    "goto offers the nodes without an input, and END, in %s [FX35]",
    async (_place, body) => {
      const offered = await commandEditor.complete(findName(body));
      expect(offered.filter((name) => name !== "")).toEqual(["__end__", "check", "read"]);
    },
  );

  test.each(Object.entries(sendBodies))("send offers the nodes with an input, in %s [FX35]", async (_place, body) => {
    const offered = await commandEditor.complete(findName(body));
    expect(offered.filter((name) => name !== "")).toEqual(["pack"]);
  });

  test.each(Object.entries(edges))("the edge %s offers the nodes that it can name [FX35]", async (edge, names) => {
    const offered = await edgeEditor.complete(edgeProgram.indexOf(`read: ${edge}`) + `read: ${edge}`.indexOf('""') + 1);
    expect(offered.filter((name) => name !== "")).toEqual(names);
  });
});
