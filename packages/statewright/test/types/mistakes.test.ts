/**
 * Each program of the folder `mistakes` has one mistake. The comment above its line holds the first line of the expected
 * error; TypeScript 7 and 5.9 report this error, at this line, and no other.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CompilerName, compilers, createTypeProject, type Diagnostic } from "../support/type-project.ts";

const folder = fileURLToPath(new URL("mistakes", import.meta.url));
const mark = /^\s*\/\/ @ts-expect-error (.*)$/;

interface Program {
  readonly file: string;
  /** First sentence of the program's comment. */
  readonly mistake: string;
  readonly lines: readonly string[];
  readonly expected: readonly { readonly line: number; readonly message: string }[];
}

const programs = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.replaceAll("\\", "/"))
  .toSorted()
  .map(readProgram);
const wrong = programs.filter(({ file }) => file.includes("/"));

const diagnostics = new Map<string, readonly Diagnostic[]>();
beforeAll(async () => {
  const project = await createTypeProject();
  for (const { file, lines } of programs)
    await project.write(`src/${file}`, lines.map((line) => (mark.test(line) ? "" : line)).join("\n"));
  const names = Object.keys(compilers) as CompilerName[];
  await Promise.all(names.map(async (name) => diagnostics.set(name, await project.compile(name))));
  await project.remove();
});
afterAll(() => diagnostics.clear());

test("at least forty programs have one mistake each, and the code that they share has none [FX30]", () => {
  expect(wrong.length).toBeGreaterThanOrEqual(40);
  expect(wrong.filter(({ expected }) => expected.length !== 1).map(({ file }) => file)).toEqual([]);
  expect(new Set(wrong.map(({ mistake }) => mistake)).size).toBe(wrong.length);
});

describe.each(Object.keys(compilers))("%s", (compiler) => {
  test("no error is outside of a wrong program [FX30]", () => {
    const files = new Set(wrong.map(({ file }) => `src/${file}`));
    expect(diagnostics.get(compiler)?.filter(({ file }) => !files.has(file))).toEqual([]);
  });
  test.each(wrong)("one mistake is one error at its line: $mistake [FX30]", ({ file, expected }) => {
    const found = (diagnostics.get(compiler) ?? []).filter((each) => each.file === `src/${file}`);
    expect(found.map(({ line, message }) => ({ line, message: sortWords(message.split("\n")[0] ?? "") }))).toEqual(
      expected.map(({ line, message }) => ({ line, message: sortWords(message) })),
    );
  });
});

/** Returns the first lines of the errors of a program, for each compiler. */
function listFirstLines(file: string): readonly string[] {
  return Object.keys(compilers).map((compiler) => {
    const found = (diagnostics.get(compiler) ?? []).filter((each) => each.file === `src/${file}.ts`);
    return found.map(({ message }) => message.split("\n")[0]).join("; ");
  });
}

function expectWords(words: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(words))
    expect(listFirstLines(file), file).toEqual(Object.keys(compilers).map(() => expect.stringContaining(text)));
}

test("an agent without the context of a tool has an error that names the tool and the context [FX32]", () => {
  expectWords({
    "agents/missing-context": 'Missing<"`context` is required by tool refund", { readonly user: string; }>',
    "agents/wrong-context": 'Missing<"`context` is required by tool refund", { readonly user: string; }>',
  });
});

test("commands, interrupts, sends and items of lists have errors that say what to write [FX33]", () => {
  expectWords({
    "edges/command-beside-plain-edge": "the node returns a command to check: use commandTargets",
    "nodes/interrupt-without-declarations": "declare the interrupt in `interrupts` of defineGraph",
    "edges/send-to-plain-node": "the node check takes no input: use goto",
    "edges/fan-out-to-plain-node": "the node check takes no input: use route, or declare the node with inputNode",
    "graphs/subgraph-input": "Property 'amount' is missing",
    "graphs/subgraph-output": "the output of the subgraph: the channel notes takes another type",
    "tools/graph-tool-input": "Property 'amount' is missing",
    "tools/middleware-decision": "return decide.allow(), decide.deny(reason), another decision, or nothing",
    "edges/function-as-edge": "use route(targets, choose) for a function that chooses the next node",
    "nodes/name-as-node":
      "a node is a function, an object with `run`, or the result of inputNode, toolNode or subgraph",
    "nodes/returns-text-in-async-body": "return an update of the state, or a command such as goto(name)",
    "nodes/unknown-channel-in-block": "the state has no channel cuont",
    "nodes/wrong-value-in-async-body": "NodeReturning<Promise<",
    "nodes/interrupt-as-return": "the state has no channel ok",
    "nodes/item-instead-of-list": "a write to a list is a list of items: use [item]",
  });
});

test("scripts, events, branches, recipes and inputs of tools that are wrong do not compile [FX34]", () => {
  expectWords({
    "agents/text-as-graph-input": "pass agent.toInput(text), or call agent.run with the text",
    "agents/messages-as-graph-input": "pass agent.toInput(text), or call agent.run with the text",
    "tests/wrong-argument": "the script calls search with another type of the argument query",
    "tests/missing-argument": "the script calls search without the argument query",
    "tests/hidden-argument": "the script calls refund with user, which is no argument of the tool",
    "tests/called-with-unknown-argument": "Did you mean to write 'query'?",
    "tests/called-with-wrong-argument": "Type 'number' is not assignable to type 'string'",
    "tests/called-with-hidden-argument": "'user' does not exist",
    "tests/called-tool-of-another-agent": 'ExpectedCall<"',
    "tests/scripted-call-of-tool": "Did you mean to write 'limit'?",
    "tests/unknown-event": "Did you mean '\"CANCEL\"'?",
    "tests/event-for-a-graph": "a graph takes no events: send a text or messages",
    "graphs/machine-event": "Did you mean to write 'CANCEL'?",
    "graphs/machine-payload": "Type 'string' is not assignable to type 'number'",
    "runs/branch-of-another-graph": "is not assignable to type 'BranchName<\"check\">'",
    "nodes/reduced-channel-in-recipe": "Cannot assign to 'total' because it is a read-only property",
    "tools/text-input": "the input of a tool is an object: use z.object({ … })",
  });
});

test("the payload of an open interrupt, and the state of the call of a graph tool, are typed [FX36]", () => {
  expectWords({
    "tools/graph-tool-state": "Did you mean 'total'?",
    "tools/graph-tool-channel": "Did you mean 'total'?",
  });
  expectWords({ "runs/misread-payload": "Property 'cent' does not exist on type '{ readonly cents: number; }'" });
});

function readProgram(file: string): Program {
  const lines = readFileSync(join(folder, file), "utf8").split("\n");
  const expected = lines.flatMap((line, index) => {
    const message = mark.exec(line)?.[1];
    return message === undefined ? [] : [{ line: index + 2, message }];
  });
  return { file, mistake: lines[0]?.replace(/^\/\*\* (.*)\. \*\/$/, "$1") ?? "", lines, expected };
}

/** Sorts the words of a message: the two compilers print the members of a type in different orders. */
function sortWords(message: string): string {
  return message
    .split(/[\s|;&<>{}(),'.]+/)
    .toSorted()
    .join(" ");
}
