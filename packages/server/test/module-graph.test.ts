/** Modules that an entry of the package loads, and the dependencies of the package. */
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { createTestServer } from "./support/create-test-server.ts";

const packages = join(import.meta.dirname, "../..");
const manifest = z.object({
  exports: z.record(z.string(), z.string()),
  dependencies: z.record(z.string(), z.string()).default({}),
  peerDependencies: z.record(z.string(), z.string()).default({}),
});

function readManifest(name: string): z.infer<typeof manifest> {
  return manifest.parse(JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8")));
}

/** Specifiers of the imports and exports of a file that remain at run time. */
function listImports(file: string): readonly string[] {
  const source = readFileSync(file, "utf8");
  const statements = source.matchAll(/^(?:import|export)\s(?!type\s)(?:[^"';]*?\sfrom\s)?"([^"]+)";/gm);
  return [...statements].flatMap(([, specifier]) => (specifier === undefined ? [] : [specifier]));
}

/** Loads an entry as the platform does: files of our packages by path, other packages by name. */
function listModules(entry: string): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (file: string): void => {
    const name = relative(packages, file);
    if (found.has(name)) return;
    found.add(name);
    for (const specifier of listImports(file)) {
      const own = /^@statewright\/([a-z-]+)(\/.+)?$/.exec(specifier);
      if (specifier.startsWith(".")) visit(join(dirname(file), specifier));
      else if (own === null) found.add(specifier);
      else visit(join(packages, own[1] ?? "", readManifest(own[1] ?? "").exports[`.${own[2] ?? ""}`] ?? ""));
    }
  };
  visit(join(packages, "server", readManifest("server").exports[entry] ?? ""));
  return found;
}

test("the root entry loads no module of another protocol, and a server without protocols has no route of one [V2]", async () => {
  const root = [...listModules(".")];
  expect(root).toContain("server/src/api/native-api.ts");
  expect(root.filter((name) => /server\/src\/(?:langgraph|ai-sdk)/.test(name))).toEqual([]);
  expect(root.filter((name) => /langchain|@ai-sdk|^ai$/.test(name))).toEqual([]);
  for (const [entry, folder] of [
    ["./langgraph", "server/src/langgraph"],
    ["./ai-sdk", "server/src/ai-sdk"],
  ] as const)
    expect([...listModules(entry)].some((name) => name.startsWith(folder))).toBe(true);
  const { server } = await createTestServer();
  expect(new Set(server.routes.map(({ protocol }) => protocol))).toEqual(new Set(["api", "health"]));
});

test("the root entry imports nothing of Node: the listener is loaded when listen is called [V10]", () => {
  const root = [...listModules(".")];
  expect(root.filter((name) => name.startsWith("node:"))).toEqual([]);
  expect(root).not.toContain("server/src/listen.ts");
  expect(readFileSync(join(packages, "server/src/create-server.ts"), "utf8")).toContain('await import("./listen.ts")');
});

test("the package depends on core, host, zod, hono and jose, and on no SDK of a protocol [V3]", () => {
  const { dependencies, peerDependencies } = readManifest("server");
  expect(Object.keys(dependencies).sort()).toEqual(["@statewright/core", "@statewright/host", "hono", "jose"]);
  expect(Object.keys(peerDependencies)).toEqual(["zod"]);
  const foreign = ["./", "./langgraph", "./ai-sdk"].flatMap((entry) => [...listModules(entry === "./" ? "." : entry)]);
  const allowed = /^(?:zod|hono\/.+|jose|xstate(?:\/.+)?|immer|p-queue|croner)$/;
  expect(foreign.filter((name) => !name.includes("/src/") && !allowed.test(name))).toEqual([]);
});
