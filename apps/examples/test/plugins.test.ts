import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadPlugin } from "@statewright/plugins";
import { call } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";
import { buildFolder, languages, noteAbsent, recorded, replay } from "./support/languages.ts";
import { talk, textOfResult } from "./support/talk.ts";

const folder = buildFolder();
const absent: string[] = [];
afterAll(() => {
  folder.remove();
  noteAbsent(absent);
});

test.each(languages)(
  "S3.41 S3.42 the plugin in $name describes itself, answers a good call and a bad one, and ends with its input",
  async (language) => {
    const started = language.start(folder.path);
    if (started === undefined) absent.push(language.name);
    const [command, ...args] = started ?? replay(language);
    const plugin = await loadPlugin({ command, args });
    const { good, bad } = language;
    const { results } = await talk(plugin.tools, [
      call(language.tool, JSON.parse(JSON.stringify(good.args)), { id: "c1" }),
      call(language.tool, JSON.parse(JSON.stringify(bad.args)), { id: "c2" }),
    ]);
    await plugin.close();
    for (const [index, { answer, isError }] of [good, bad].entries()) {
      const result = results()[index];
      expect(result?.isError).toBe(isError);
      if (typeof answer === "string") expect(textOfResult(result)).toBe(answer);
      else expect(textOfResult(result)).toMatch(answer);
    }
    const { sent, answered } = recorded(language);
    const byHand = spawnSync(command, args, { input: sent.map((line) => `${line}\n`).join(""), encoding: "utf8" });
    expect(byHand.status).toBe(0);
    expect(byHand.stdout.trimEnd().split("\n")).toHaveLength(answered.length);
    expect(JSON.parse(byHand.stdout.split("\n")[0] ?? "")).toEqual(JSON.parse(answered[0] ?? ""));
  },
);

test("each has a page with the one command that starts it", () => {
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
