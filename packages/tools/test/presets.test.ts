import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  isStatewrightError,
  type ModelRequest,
  run,
  START,
  type Tool,
  toolNode,
} from "@statewright/core";
import { toModelTool } from "@statewright/core/adapter";
import { say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";
import {
  allTools,
  bash,
  codingTools,
  defaultTools,
  editFile,
  find,
  listFiles,
  type PresetName,
  pathArguments,
  powershell,
  presetTools,
  readFile,
  readonlyTools,
  search,
  webFetch,
  writeFile,
} from "../src/index.ts";

const root = import.meta.dirname;
const six = ["bash", "read_file", "write_file", "edit_file", "list_files", "search"];
const names = (tools: readonly Tool[]) => tools.map(({ spec }) => spec.name);

/** Returns the names of the tools in a model request. */
async function wire(tools: readonly Tool[]): Promise<readonly string[]> {
  const node = toolNode({ tools });
  const requests: ModelRequest[] = [];
  const scripted = scriptedModel([say("Done")]);
  const model = {
    ...scripted,
    respond: (...given: Parameters<typeof scripted.respond>) => {
      requests.push(given[0]);
      return scripted.respond(...given);
    },
  };
  const graph = defineGraph({ name: "wire", state: defineState({ messages: channel.messages() }) })
    .nodes({
      model: async (state, runtime) => ({
        messages: [
          await runtime.model({ model, request: { messages: state.messages, tools: node.registry.forModel() } }),
        ],
      }),
    })
    .edges({ [START]: "model", model: END });
  await run(graph, { input: { messages: [{ role: "user", id: "u", content: [{ type: "text", text: "Hi" }] }] } })
    .result;
  return requests[0]?.tools?.map(({ name }) => name) ?? [];
}

test("defaultTools returns a fresh list that can be extended without changing the next one [S0.29, S2.29]", async () => {
  const first = defaultTools({ root });
  first.push(
    defineTool({
      name: "deploy",
      description: "Deploy what was built.",
      input: codingTools({ root })[0]?.spec.input ?? expect.unreachable(),
      run: () => "ok",
    }),
  );
  expect((await wire(first)).toSorted()).toEqual([...six, "deploy"].toSorted());
  expect(names(defaultTools({ root }))).toEqual(six);
});

test("the default tools are bash, read_file, write_file, edit_file, list_files and search, without shared_state [S0.30, S2.30]", async () => {
  expect((await wire(defaultTools({ root }))).toSorted()).toEqual(six.toSorted());
});

test("presetTools returns a fresh list for each preset name", () => {
  expect(names(presetTools("coding", { root }))).toEqual([...six, "find", "read_artifact"]);
  expect(names(presetTools("readonly", { root }))).toEqual([
    "read_file",
    "list_files",
    "find",
    "search",
    "read_artifact",
  ]);
  expect(presetTools("none", { root })).toEqual([]);
  expect(names(presetTools("all", { root }))).toEqual(expect.arrayContaining(names(codingTools({ root }))));
  for (const name of ["coding", "readonly", "none", "all"] as const)
    expect(presetTools(name, { root })).not.toBe(presetTools(name, { root }));
  expect(() => presetTools("everything" as PresetName, { root })).toThrow(
    expect.toSatisfy((error) => isStatewrightError(error) && error.code === "invalid_option"),
  );
});

test("the readonly tools are pure reads, and safety and effect of all tools are declared", () => {
  for (const { spec } of readonlyTools({ root }))
    expect(spec).toMatchObject({ effect: "pure", safety: { access: "read" } });
  const said = Object.fromEntries(allTools({ root }).map(({ spec }) => [spec.name, [spec.effect, spec.safety.access]]));
  expect(said).toMatchObject({
    bash: ["once", "destructive"],
    write_file: ["idempotent", "write"],
    edit_file: ["idempotent", "write"],
  });
  expect(allTools({ root }).find(({ spec }) => spec.name === "bash")?.spec.safety).toMatchObject({
    process: true,
    confirm: "policy",
  });
});

test("every tool that uses files declares its path arguments", () => {
  for (const tool of [...allTools({ root }), powershell({ root })]) {
    const { name, safety } = tool.spec;
    const properties = Object.keys(toModelTool(tool.spec).inputSchema["properties"] ?? {});
    const paths = properties.filter((property) => property === "path" || property === "cwd");
    const usesFiles = safety.filesystem !== undefined && safety.filesystem !== "none";
    expect([name, pathArguments[name]]).toEqual([name, usesFiles ? paths : undefined]);
  }
});

test("the workspace root is not visible to the model", () => {
  for (const tool of allTools({ root }))
    expect(JSON.stringify(toolNode({ tools: [tool] }).registry.forModel())).not.toContain(root);
});

test("every tool factory refuses unknown options and a root that is not a folder", () => {
  const makers = {
    bash,
    codingTools,
    defaultTools,
    editFile,
    find,
    listFiles,
    powershell,
    readFile,
    readonlyTools,
    search,
  };
  for (const [name, maker] of Object.entries({ ...makers, writeFile })) {
    const make = maker as (options: object) => unknown;
    expect(() => make({ root, roots: [] })).toThrow(/^invalid_option: .* has no option "roots"/);
    for (const nowhere of ["", undefined])
      expect(() => make({ root: nowhere }), name).toThrow(
        /^invalid_option: .*: `root` must be the path of a folder, got (""|undefined)/,
      );
    expect(() => make({ root })).not.toThrow();
  }
  expect(() => bash({ root, nonZero: "fail" } as never)).toThrow(
    /^invalid_option: bash: `nonZero` must be "result" or "error", got "fail"/,
  );
  expect(() => webFetch({ allowHost: ["a.example"] } as never)).toThrow(/has no option "allowHost"/);
  expect(() => defaultTools({ root, shell: { timeout: 5 } } as never)).toThrow(/has no option "timeout"/);
});

test("each ready-made tool has a label for people, which is no form of its name [S0.70, S2.76]", () => {
  const labels = Object.fromEntries(
    [...allTools({ root }), powershell({ root }), webFetch()].map(({ spec }) => [spec.name, spec.label]),
  );
  expect(labels).toMatchObject({
    bash: "Run Command",
    powershell: "Run Command",
    read_file: "Read File",
    write_file: "Write File",
    edit_file: "Edit File",
    list_files: "List Files",
    find: "Find Files",
    search: "Search Files",
    todo: "Task List",
    ask_user: "Question",
    web_fetch: "Fetch Page",
  });
  for (const [name, label] of Object.entries(labels)) expect(label, name).toMatch(/^[A-Z][a-z]+( [A-Z][a-z]+)*$/);
});
