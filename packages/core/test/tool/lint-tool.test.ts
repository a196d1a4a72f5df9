import { describe, expect, test } from "vitest";
import * as z from "zod";
import { jsonSchemaInput } from "../../src/adapter.ts";
import { defineTool, type ToolInput } from "../../src/index.ts";
import { lintTool } from "../../src/inspect.ts";

const good = "Search files by glob pattern (e.g., **/*.ts for all TypeScript files)";

function codes(parts: { readonly description?: string; readonly label?: string; readonly input?: ToolInput }) {
  const { description = good, input = z.object({}), label } = parts;
  const tool = defineTool({ name: "search_files", description, input, run: () => "x", ...(label && { label }) });
  return lintTool(tool).map(({ code, path }) => (path === undefined ? code : `${code} ${path}`));
}

describe("lintTool", () => {
  test("lintTool warns about a description under 20 characters [S4.29]", () => {
    expect(codes({ description: "Search" })).toEqual(["short_description"]);
    expect(codes({ description: `${"x".repeat(19)}   ` })).toEqual(["short_description"]);
    expect(codes({ description: "x".repeat(20) })).toEqual([]);
    expect(codes({ description: good })).toEqual([]);
  });

  test("lintTool warns about a parameter without a description at every depth [S4.30]", () => {
    const input = z.object({
      plain: z.string(),
      told: z.string().describe("Told"),
      list: z.array(z.object({ inner: z.number() })).describe("A list"),
      map: z.record(z.string(), z.object({ deep: z.number() })).describe("A map"),
      either: z.union([z.string(), z.object({ branch: z.string() })]).describe("Either"),
      blank: z.string().describe("  "),
    });
    expect(codes({ input })).toEqual([
      "undescribed_parameter plain",
      "undescribed_parameter list[].inner",
      "undescribed_parameter map.*.deep",
      "undescribed_parameter either.branch",
      "undescribed_parameter blank",
    ]);
    const node: z.ZodType = z.object({
      name: z.string(),
      get children() {
        return z.array(node).optional().describe("Below it");
      },
    });
    expect(codes({ input: z.object({ tree: node.describe("A tree") }) })).toContain("undescribed_parameter tree.name");
    const json = jsonSchemaInput({ type: "object", properties: { a: { type: "object", properties: { b: {} } } } });
    expect(codes({ input: json })).toEqual(["undescribed_parameter a", "undescribed_parameter a.b"]);
  });

  test("lintTool warns about a label equal to the tool name [S4.31]", () => {
    expect(codes({ label: "search_files" })).toEqual(["label_is_name"]);
    expect(codes({ label: "File Search" })).toEqual([]);
    expect(codes({})).toEqual([]);
  });

  test("every lintTool warning names its tool and the fix", () => {
    const tool = defineTool({
      name: "search_files",
      label: "search_files",
      description: "Search",
      input: z.object({ q: z.string() }),
      run: () => "x",
    });
    const warnings = lintTool(tool);
    expect(warnings.map(({ code }) => code)).toEqual(["short_description", "label_is_name", "undescribed_parameter"]);
    for (const { message, tool: name } of warnings)
      expect([name, message]).toEqual(["search_files", expect.stringMatching(/"search_files".+: .+\.$/)]);
  });
});
