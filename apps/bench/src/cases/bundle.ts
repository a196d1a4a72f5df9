/** B11: what a bundle weighs, minified and by gzip, of the built packages. The bytes are the figure; the time is the bundler's. */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Case, Contender } from "../case.ts";
import type { Bundler } from "../peers/esbuild.ts";
import type { Peers } from "../peers/langgraph.ts";

const core = fileURLToPath(new URL("../../../../packages/core/", import.meta.url));
const everything = 'export * from "./dist/index.js";';
const withSchemas = `${everything}\nimport * as z from "zod";\nexport const schema = z.object({ city: z.string().optional(), days: z.array(z.number()) });`;

/** None where nothing was built, or where the bundler is missing. */
export function bundleSize({ bundler, langgraphEntry }: Peers): readonly Case[] {
  if (bundler === undefined || !existsSync(`${core}dist/index.js`)) return [];
  const weighed = (name: string, contents: string, options: Options): Contender =>
    contender(bundler, name, contents, { ...options, role: "ours", folder: core });
  return [
    {
      id: "B11",
      title: "core bundled, gzip",
      unit: "bundle",
      budget: { cpuUs: 1_000_000, text: "35 KB own code, 90 KB with libraries" },
      size: 1,
      contenders: [
        weighed("own code", everything, { packages: "external" }),
        weighed("with its libraries", everything, { packages: "bundle" }),
        weighed("with its libraries and a schema of zod", withSchemas, { packages: "bundle" }),
        ...(langgraphEntry === undefined
          ? []
          : [
              contender(bundler, "LangGraph.js", 'export * from "@langchain/langgraph";', {
                packages: "bundle",
                role: "peer",
                folder: dirname(fileURLToPath(langgraphEntry)),
              }),
            ]),
      ],
    },
  ];
}

interface Options {
  readonly packages: "bundle" | "external";
}

interface Where extends Options {
  readonly role: Contender["role"];
  readonly folder: string;
}

function contender(bundler: Bundler, name: string, contents: string, { packages, role, folder }: Where): Contender {
  let bytes = 0;
  return {
    name,
    role,
    open: () => ({
      run: async () => {
        const { outputFiles } = await bundler.build({
          stdin: { contents, resolveDir: folder },
          bundle: true,
          minify: true,
          write: false,
          format: "esm",
          platform: role === "ours" ? "browser" : "node",
          packages,
        });
        bytes = outputFiles.reduce((sum, file) => sum + gzipSync(file.contents).length, 0);
        return undefined;
      },
      close: () => bytes,
    }),
  };
}
