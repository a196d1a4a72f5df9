/** No code outside of the kinds asks for the kind of a node: it asks the kind. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** Forms of the question for the kind of a node, as the engine once asked. */
const questions: readonly RegExp[] = [
  // node.kind === "tools"
  /\bkind (?:===|!==) "(?:tools|body)"/g,
  /(?:\b(?:node|record|declared)|\))\??\.kind (?:===|!==) "task"/g,
  /\(\{ kind \}\) => kind === "task"/g,
  /\bkind === "task"\) (?:checkSync|return)/g,
  // node.tools !== undefined, subgraph === undefined
  /\b(?:node|record|defined)?\??\.?\b(?:tools|subgraph) (?:===|!==) undefined/g,
  /\b(?:node|record)\??\.input (?:===|!==) undefined/g,
  // plan.nodes.get(name)?.subgraph
  /\bnodes\.get\([^()]*(?:\([^()]*\))?[^()]*\)\??\.(?:kind|tools|subgraph|input)\b/g,
  // for (const { tools } of nodes.values())
  /\{[^{}\n]*\b(?:kind|tools|subgraph)\b[^{}\n]*\} of [\w.]*nodes\.values\(\)/g,
  /nodes\.values\(\)\]\.\w+\((?:async )?\(\{[^}]*\b(?:kind|tools|subgraph)\b/g,
  /\b(?:tools|subgraph)\b[^{}\n]*\}: NodeRecord\b/g,
  /\bisToolNode\b/g,
];

const source = join(import.meta.dirname, "../../src");

/** Forms of the question for the program of a plan. */
const programQuestions: readonly RegExp[] = [
  /\bplan\.machine (?:===|!==) undefined/g,
  /\bgetPlan\([^()]*\)\.machine\b/g,
  /\bgetMachineDefinition\([^()]*(?:\(\))?\) (?:===|!==) undefined/g,
  /\bconst \{ machine \} = (?:session\.)?plan\b/g,
  /\breturn machine (?:===|!==) undefined/g,
  /\bdrawing (?:===|!==) undefined/g,
];

function countQuestions(room: string, except = "-", forms = questions): readonly string[] {
  return readdirSync(join(source, room), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith(except))
    .flatMap((file) => {
      const text = readFileSync(join(source, room, file), "utf8");
      return forms.flatMap((form) => [...text.matchAll(form)].map(([found]) => `${room}/${file}: ${found}`));
    });
}

test("no file of run, resume or inspect asks for the kind of a node", () => {
  expect(["run", "resume", "inspect"].flatMap((room) => countQuestions(room))).toEqual([]);
});

test("compile asks for the kind of a node at most three times outside of the kinds", () => {
  expect(countQuestions("compile", "kinds").length).toBeLessThanOrEqual(3);
});

test("no file of run, resume or inspect asks whether a plan is a graph or a machine, and compile at most three times", () => {
  const countAll = (room: string): readonly string[] => countQuestions(room, "-", programQuestions);
  expect(["run", "resume", "inspect"].flatMap(countAll)).toEqual([]);
  expect(countAll("compile").length).toBeLessThanOrEqual(3);
});

test("every form of the question is found", () => {
  const asked = [
    'if (node.kind === "tools") return;',
    'if (record.kind !== "task") return;',
    "if (node.subgraph !== undefined) return;",
    "const tools = plan.nodes.get(task.node)?.tools;",
    "for (const { name, subgraph } of plan.nodes.values()) use(subgraph);",
    "[...graph.nodes.values()].flatMap(({ name, tools }) => tools);",
  ];
  for (const line of asked) expect(questions.some((form) => line.search(form) >= 0)).toBe(true);
});
