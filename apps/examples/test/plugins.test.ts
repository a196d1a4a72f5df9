import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadPlugin, loadTools } from "@statewright/plugins";
import { call } from "@statewright/testing";
import { codingTools } from "@statewright/tools";
import { afterAll, expect, test } from "vitest";
import { buildFolder, type Language, languages, noteAbsent, readRecording, replay } from "./support/languages.ts";
import { getResultText, runConversation } from "./support/talk.ts";

const folder = buildFolder();
const absent: string[] = [];
afterAll(() => {
  folder.remove();
  noteAbsent(absent);
});

/** Commands that start the plugins; compiled plugins are built once. */
const commands = new Map<Language, readonly [string, ...string[]]>();

function createCommand(language: Language): readonly [string, ...string[]] {
  const known = commands.get(language);
  if (known !== undefined) return known;
  const started = language.start(folder.path);
  if (started === undefined) absent.push(language.name);
  const command = started ?? replay(language);
  commands.set(language, command);
  return command;
}

test.each(languages)(
  "the plugin in $name describes itself, answers a valid and an invalid call, and exits at the end of its input [S3.41]",
  async (language) => {
    const [command, ...args] = createCommand(language);
    const plugin = await loadPlugin({ command, args });
    const { good, bad } = language;
    const { results } = await runConversation(plugin.tools, [
      call(language.tool, JSON.parse(JSON.stringify(good.args)), { id: "c1" }),
      call(language.tool, JSON.parse(JSON.stringify(bad.args)), { id: "c2" }),
    ]);
    await plugin.close();
    for (const [index, { answer, isError }] of [good, bad].entries()) {
      const result = results()[index];
      expect(result?.isError).toBe(isError);
      if (typeof answer === "string") expect(getResultText(result)).toBe(answer);
      else expect(getResultText(result)).toMatch(answer);
    }
  },
);

test("each plugin fed by hand prints its definition and one result per line, and exits at the end of its input [S3.42]", () => {
  for (const language of languages) {
    const [command, ...args] = createCommand(language);
    const { sent, answered } = readRecording(language);
    const byHand = spawnSync(command, args, { input: sent.map((line) => `${line}\n`).join(""), encoding: "utf8" });
    expect(byHand.status, language.name).toBe(0);
    expect(byHand.stdout.trimEnd().split("\n"), language.name).toHaveLength(answered.length);
    expect(JSON.parse(byHand.stdout.split("\n")[0] ?? "")).toEqual(JSON.parse(answered[0] ?? ""));
  }
});

test("a configuration of five plugins in five languages and the coding tools loads unchanged, one process each [S3.55]", async () => {
  const five = languages.filter(({ name }) => ["Python", "TypeScript (Deno)", "Rust", "bash", "Ruby"].includes(name));
  const plugins = five.map((language) => {
    const [path, ...args] = createCommand(language);
    return { path, args };
  });
  const file = join(folder.path, "agent.yaml");
  writeFileSync(file, JSON.stringify({ tools: { preset: "coding", plugins } }));
  const coding = () => codingTools({ root: folder.path });
  const loaded = await loadTools(file, { presets: { coding } });
  const names = loaded.tools.map(({ spec }) => spec.name);
  expect(names).toEqual([...coding().map(({ spec }) => spec.name), ...five.map(({ tool }) => tool)]);
  expect(new Set(loaded.plugins.map(({ pid }) => pid)).size).toBe(5);
  await loaded.close();
  writeFileSync(file, JSON.stringify({ tools: { plugins: [{ path: "no-such-interpreter", args: ["stats.py"] }] } }));
  await expect(loadTools(file)).rejects.toMatchObject({ message: expect.stringContaining("no-such-interpreter") });
});

test("each plugin page has the single command that starts the plugin [S3.41]", () => {
  for (const [language, start] of Object.entries({
    python: "python3 stats.py",
    typescript: "node json_query.ts",
    bash: "sh sys_info.sh",
    rust: "./file_info",
    go: "go run bash_plugin.go",
    ruby: "ruby template.rb",
  }))
    expect(readFileSync(join(import.meta.dirname, "../tools", language, "README.md"), "utf8")).toContain(
      `\n    ${start}\n`,
    );
});
