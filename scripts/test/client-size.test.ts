/** The client, bundled as a page would. */
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";

const client = join(import.meta.dirname, "../../packages/client");

test("the client has no dependency and is smaller than 8 KB in a compressed bundle [V25]", async () => {
  const warnings: string[] = [];
  const bundle = await rolldown({
    input: join(client, "src/index.ts"),
    platform: "browser",
    onwarn: (warning) => warnings.push(warning.message ?? String(warning)),
  });
  const { output } = await bundle.generate({ format: "esm", minify: true });
  await bundle.close();
  const chunks = output.flatMap((file) => (file.type === "chunk" ? [file] : []));
  expect(warnings).toEqual([]);
  expect(chunks.map(({ imports, moduleIds }) => [imports, moduleIds.every((id) => id.startsWith(client))])).toEqual([
    [[], true],
  ]);
  expect(gzipSync(chunks[0]?.code ?? "").byteLength).toBeLessThan(8 * 1_024);
});
