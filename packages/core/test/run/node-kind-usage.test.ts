/** No code outside of the kinds asks for the kind of a node: it calls the kind interface. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** Expressions that ask for the kind of a node. */
const questions: readonly RegExp[] = [
  // node.kind === "tools", declared.kind === "input"
  /(?:\b(?:node|record|declared)|\))\??\.kind (?:===|!==) "input"/g,
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
  // node.logic === toolKind, logic.shownAs === "tools"
  /[=!]== (?:function|input|subgraph|tool|agentTurn)Kind\b/g,
  /\b(?:shownAs|savedAs) (?:===|!==)/g,
  // const { tools } = node; const inner = record.subgraph
  /\bconst \{[^{}\n]*\b(?:shownAs|savedAs|tools|subgraph)\b[^{}\n]*\} = (?:node|record|logic|\w+\.logic|[\w.]*nodes\.get\([^()]*\))(?:;| \?\?)/g,
  /\bconst \w+ = (?:node|record)\??\.(?:tools|subgraph|input)\b/g,
];

const source = join(import.meta.dirname, "../../src");

/** Expressions that ask for the program of a plan. */
const programQuestions: readonly RegExp[] = [
  /\bplan\.machine (?:===|!==) undefined/g,
  /\bgetPlan\([^()]*\)\.machine\b/g,
  /\bgetMachineDefinition\([^()]*(?:\(\))?\) (?:===|!==) undefined/g,
  /\bconst \{ machine \} = (?:session\.)?plan\b/g,
  /\breturn machine (?:===|!==) undefined/g,
  /\bdrawing (?:===|!==) undefined/g,
  // const machine = plan.machine; const { machine } = getPlan(graph)
  /\bplan\??\.machine\b/g,
  /\bconst \{[^{}\n]*\bmachine\b[^{}\n]*\} = (?:[\w.]*\bplan|getPlan\([^()]*\))/g,
  // const definition = getMachineDefinition(graph)
  /(?<!function )\bgetMachineDefinition\(/g,
  /\bprogram\.name (?:===|!==)/g,
  /[=!]== (?:graph|machine)Program\w*/g,
];

/** Lists the lines of a folder's files that ask; `except` is a folder of implementations. */
function listKindChecks(room: string, except = "-", forms = questions): readonly string[] {
  return readdirSync(join(source, room), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith(except))
    .flatMap((file) => {
      const text = readFileSync(join(source, room, file), "utf8");
      const found = forms.flatMap((form) => [...text.matchAll(form)].map(({ index }) => index));
      const lines = new Set(found.map((index) => text.slice(0, index).split("\n").length));
      return [...lines].map((line) => `${room}/${file}:${line}: ${text.split("\n")[line - 1]?.trim()}`);
    });
}

test("no file of run, resume or inspect asks for the kind of a node", () => {
  expect(["run", "resume", "inspect"].flatMap((room) => listKindChecks(room))).toEqual([]);
});

test("compile asks for the kind of a node at most three times outside of the kinds", () => {
  expect(listKindChecks("compile", "kinds").length).toBeLessThanOrEqual(3);
});

test("no file of run, resume or inspect asks whether a plan is a graph or a machine, and compile at most three times", () => {
  const countAll = (room: string): readonly string[] => listKindChecks(room, "programs", programQuestions);
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
    'if (declared.kind === "input") return;',
    "if (node.logic === subgraphKind) return;",
    'return record.logic.shownAs === "tools";',
    "const { policy, tools } = node;",
    "const inner = record.subgraph;",
  ];
  const askedOfPrograms = [
    "const machine = plan.machine;",
    "const { machine, nodes } = session.position.plan;",
    "const { machine } = getPlan(graph);",
    "const definition = getMachineDefinition(graph);",
    'if (plan.program.name === "machine") return;',
    "if (plan.program === machineProgramDefinition) return;",
  ];
  for (const line of asked)
    expect(
      questions.some((form) => line.search(form) >= 0),
      line,
    ).toBe(true);
  for (const line of askedOfPrograms)
    expect(
      programQuestions.some((form) => line.search(form) >= 0),
      line,
    ).toBe(true);
});
