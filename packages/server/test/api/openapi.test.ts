/** OpenAPI document of the native API. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import * as z from "zod";
import { nativeApi, openApi } from "../support/check-answer.ts";

const metaSchema: unknown = JSON.parse(
  readFileSync(new URL("../fixtures/openapi-3.1.schema.json", import.meta.url), "utf8"),
);
const document = z
  .object({
    paths: z.record(z.string(), z.record(z.string(), z.object({ operationId: z.string() }))),
    components: z.object({ schemas: z.record(z.string(), z.record(z.string(), z.unknown())) }),
  })
  .parse(openApi);

test("the OpenAPI document of the repository is that of the routes; vitest -u writes it anew [V24]", async () => {
  const text = `${JSON.stringify(openApi, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot("../../openapi.json");
});

test("the OpenAPI document is valid by the JSON Schema of OpenAPI 3.1, and its schemas by JSON Schema 2020-12 [V24]", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const validate = ajv.compile(z.record(z.string(), z.unknown()).parse(metaSchema));
  expect([validate(openApi), validate.errors]).toEqual([true, null]);
  ajv.addSchema(z.record(z.string(), z.unknown()).parse(openApi), "openapi");
  for (const name of Object.keys(document.components.schemas)) {
    expect(ajv.validateSchema(document.components.schemas[name] ?? {}), name).toBe(true);
    expect(ajv.getSchema(`openapi#/components/schemas/${name}`), name).toBeTypeOf("function");
  }
});

test("the OpenAPI document has each route once, with a name of its own, and no other [V24]", () => {
  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
  );
  const served = nativeApi.routes.map(
    ({ method, path, operation }) => `${method.toLowerCase()} ${path.replaceAll(/:([a-z]+)/g, "{$1}")} ${operation.id}`,
  );
  expect(documented.toSorted()).toEqual(served.toSorted());
  expect(new Set(nativeApi.routes.map(({ operation }) => operation.id)).size).toBe(served.length);
});

test("every body of a request refuses unknown keys [V24]", () => {
  const bodies = nativeApi.routes.flatMap(({ operation: { body, id } }) => (body === undefined ? [] : [{ body, id }]));
  expect(bodies.length).toBeGreaterThan(15);
  for (const { body, id } of bodies) {
    const parsed = body.safeParse({ zzz: 1 });
    const codes = parsed.success ? [] : parsed.error.issues.map(({ code }) => code);
    expect([id, codes]).toEqual([id, expect.arrayContaining(["unrecognized_keys"])]);
  }
});
