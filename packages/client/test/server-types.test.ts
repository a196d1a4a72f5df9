/** The types of the client and the bodies of the server are the same. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as z from "zod";
import { startTestServer } from "./support/test-server.ts";

const Schema = z.object({ properties: z.record(z.string(), z.unknown()).optional() });
const Document = z.object({ components: z.object({ schemas: z.record(z.string(), Schema) }) });

/** Types of the client by the component of the OpenAPI document that they describe. */
const described = {
  Thread: "Thread",
  Run: "Run",
  OpenInterrupt: "Interrupt",
  Interrupt: "WaitingInterrupt",
  State: "State",
  NewFork: "NewFork",
  NewThread: "NewThread",
  ThreadPatch: "ThreadPatch",
  Info: "Info",
  GraphDetails: "GraphDetails",
  Diff: "Diff",
  Artifact: "Artifact",
  File: "UploadedFile",
  NewSchedule: "NewSchedule",
  Schedule: "Schedule",
  BulkRequest: "BulkRequest",
  BulkReport: "BulkReport",
} as const;

test("the types of the client have the fields of the OpenAPI document of the server, and no others [V25]", async () => {
  const { server } = await startTestServer();
  const { components } = Document.parse(server.openapi());
  const source = readFileSync(new URL("../src/server-types.ts", import.meta.url), "utf8");
  for (const [component, type] of Object.entries(described)) {
    const fields = Object.keys(components.schemas[component]?.properties ?? {});
    expect([component, listFields(source, type)]).toEqual([component, fields.toSorted()]);
  }
});

/** Names of the fields of an interface, with those of the interface that it extends. */
function listFields(source: string, name: string): readonly string[] {
  const found = new RegExp(`interface ${name}(?:<[^{]*>)?(?: extends (\\w+))? \\{([^]*?)\\n\\}`).exec(source);
  const [, base, body = ""] = found ?? [];
  const own = [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map((match) => match[1] ?? "");
  return [...own, ...(base === undefined ? [] : listFields(source, base))].toSorted();
}
