import { join } from "node:path";
import { toModelTool } from "@statewright/core/adapter";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadOpenApi, type OpenApiOptions } from "../src/index.ts";
import { call, type EchoServer, type RecordedRequest, startEchoServer } from "./support/openapi.ts";

const pets = join(import.meta.dirname, "fixtures/pets.yaml");
const shop = join(import.meta.dirname, "fixtures/shop.json");
const secrets = {
  KEY: "key-5ecret",
  USER: "ann",
  PASSWORD: "pa55 word",
  SID: "sid-5ecret",
  QUERY: "query-5ecret&",
  TOKEN: "token-5ecret",
};
let server: EchoServer;

beforeAll(async () => {
  server = await startEchoServer();
});
afterAll(() => server.close());

const local = (): OpenApiOptions => ({ baseUrl: `${server.base}/v1`, allowPrivate: ["127.0.0.1"] });
const loadPets = (options: OpenApiOptions = {}) =>
  loadOpenApi(pets, { auth: { key: "KEY", login: "TOKEN" }, ...local(), ...options });

async function callAndRecord(
  tools: Awaited<ReturnType<typeof loadOpenApi>>["tools"],
  name: string,
  args: object,
): Promise<RecordedRequest> {
  const came = await call(tools, name, JSON.parse(JSON.stringify(args)), { secrets });
  const [last] = server.observed.slice(-1);
  if (last === undefined || came.result.isError) throw new Error(came.text);
  return last;
}

test("OpenAPI operations become tools with names, descriptions, effects and schemas", async () => {
  const { tools, operations } = await loadPets();
  const specs = new Map(tools.map(({ spec }) => [spec.name, spec]));
  expect([...specs.keys()]).toEqual(["list_pets", "add_pet", "pets_get", "put_pets_id", "drop_pet", "add_photo"]);
  expect(operations[2]).toMatchObject({ id: "pets/get", method: "GET", path: "/pets/{id}", deprecated: true });
  expect(specs.get("pets_get")).toMatchObject({
    originalName: "pets/get",
    description: "Deprecated. One pet.",
    effect: "idempotent",
    safety: { access: "read", network: ["127.0.0.1"], filesystem: "none" },
    inject: { "auth.key": "secret" },
  });
  expect(specs.get("add_pet")).toMatchObject({ effect: "once", safety: { access: "write" } });
  expect(specs.get("put_pets_id")).toMatchObject({ effect: "idempotent", originalName: "put /pets/{id}" });
  expect(specs.get("drop_pet")).toMatchObject({ effect: "idempotent", safety: { access: "destructive" } });
  const getSchema = (name: string) => toModelTool(specs.get(name)!).inputSchema;
  expect(getSchema("list_pets")).toEqual({
    type: "object",
    properties: {
      limit: { type: "integer", maximum: 100, default: 20 },
      kind: { type: "array", items: { type: "string", enum: ["cat", "dog"] } },
      filter_name: { type: ["string", "null"], description: "A part of the name" },
    },
    additionalProperties: false,
  });
  // A recursive schema is under $defs; read-only properties are not part of the arguments.
  const pet = {
    type: "object",
    required: ["name"],
    properties: {
      name: { type: "string", examples: ["Tom"] },
      kind: { type: "string", enum: ["cat", "dog"] },
      mother: { anyOf: [{ allOf: [{ $ref: "#/$defs/Pet" }] }, { type: "null" }] },
    },
  };
  expect(getSchema("add_pet")).toEqual({
    type: "object",
    properties: { limit: { type: "integer", maximum: 100, default: 20 }, body: { $ref: "#/$defs/Pet" } },
    required: ["body"],
    additionalProperties: false,
    $defs: { Pet: pet },
  });
  // Names used in two places get a prefix; headers that the request itself sets are not arguments.
  expect(getSchema("pets_get")).toMatchObject({
    properties: {
      path_id: { type: "string" },
      query_id: { type: "integer", exclusiveMinimum: 0 },
      query_body: { type: "boolean" },
      "X-Trace": { type: "string" },
    },
    required: ["path_id"],
  });
  expect(Object.keys(Object(getSchema("pets_get")["properties"]))).toHaveLength(4);
});

test("an OpenAPI 3.1 document keeps its schemas, annotations next to references, and data that resembles references", async () => {
  const { tools } = await loadOpenApi(shop, { ...local(), operations: { ids: ["placeOrder"] } });
  expect(toModelTool(tools[0]!.spec).inputSchema).toMatchObject({
    properties: {
      body: {
        properties: {
          items: { type: "array", items: { $ref: "#/$defs/Item", description: "What is bought" } },
          note: { type: ["string", "null"] },
          default: { const: { $ref: "is data" } },
        },
      },
    },
    $defs: { Item: { properties: { part: { $ref: "#/$defs/Item" } } } },
  });
});

test("an OpenAPI filter accepts ids, tags, methods and a function, and unknown names are refused", async () => {
  const ids = async (operations: NonNullable<OpenApiOptions["operations"]>) =>
    (await loadPets({ operations })).operations.map(({ id }) => id);
  expect(await ids({ tags: ["pets"], methods: ["post"] })).toEqual(["addPet"]);
  expect(await ids({ where: ({ deprecated }) => deprecated })).toEqual(["pets/get"]);
  await expect(loadPets({ operations: { ids: ["listPet"] } })).rejects.toThrow(/"listPet".*listPets, addPet/);
  await expect(loadPets({ operations: { tags: ["cats"] } })).rejects.toThrow(/tag "cats".*pets/);
});

test("two operations with one name are refused with their locations, and custom names resolve the conflict [T52]", async () => {
  const paths = { "/a/b": { get: { operationId: "a/b" } }, "/a_b": { get: { operationId: "a_b" } } };
  const document = { openapi: "3.1.0", paths };
  await expect(loadOpenApi(document, local())).rejects.toMatchObject({
    code: "invalid_tool",
    message: expect.stringMatching(/"a_b": GET \/a\/b \(a\/b\) and GET \/a_b \(a_b\)/),
  });
  const { tools } = await loadOpenApi(document, {
    ...local(),
    prefix: "x",
    names: ({ id }) => (id === "a/b" ? "slashed" : undefined),
  });
  expect(tools.map(({ spec }) => [spec.name, spec.originalName])).toEqual([
    ["x_slashed", "a/b"],
    ["x_a_b", "a_b"],
  ]);
});

test("OpenAPI parameters are sent as documented, and no value leads to another path", async () => {
  const { tools } = await loadPets();
  expect(
    await callAndRecord(tools, "list_pets", { kind: ["cat", "dog"], filter_name: "a&b=c", limit: 5 }),
  ).toMatchObject({
    method: "GET",
    url: "/v1/pets?limit=5&kind=cat&kind=dog&filter%5Bname%5D=a%26b%3Dc",
  });
  const got = await callAndRecord(tools, "pets_get", {
    path_id: "a/b?#%",
    query_id: 3,
    query_body: true,
    "X-Trace": "t",
  });
  expect(got.url).toBe("/v1/pets/a%2Fb%3F%23%25?id=3&body=true");
  expect(got.headers).toMatchObject({ "x-trace": "t", "x-key": "key-5ecret" });
  const before = server.observed.length;
  for (const path_id of ["..", ".", ""])
    expect((await call(tools, "pets_get", { path_id }, { secrets })).result.error?.kind).toBe("invalid_args");
  const trace = await call(tools, "pets_get", { path_id: "1", "X-Trace": "a\r\nx: y" }, { secrets });
  expect(trace.result.error?.kind).toBe("invalid_args");
  expect(server.observed.length).toBe(before);
});

test("OpenAPI bodies are sent as JSON, forms, multipart files, text and bytes", async () => {
  const { tools } = await loadPets();
  const added = await callAndRecord(tools, "add_pet", { body: { name: "Tom" } });
  expect([added.headers["content-type"], added.body]).toEqual(["application/json", '{"name":"Tom"}']);
  const put = await callAndRecord(tools, "put_pets_id", {
    id: "1",
    body: { name: "a b&c", tags: ["x", "y"], owner: { n: 1 } },
  });
  expect(put.body).toBe("name=a+b%26c&tags=x&tags=y&owner=%7B%22n%22%3A1%7D");
  const photo = { name: 'p".png', mimeType: "image/png", base64: "AQID" };
  const sent = await callAndRecord(tools, "add_photo", {
    id: "1",
    body: { photo, more: [{ text: "one" }], about: { by: "ann" }, note: "hi" },
  });
  const [, boundary = ""] = /boundary=(\S+)/.exec(sent.headers["content-type"] ?? "") ?? [];
  const disposition = "Content-Disposition: form-data; name=";
  expect(sent.body.split(`--${boundary}`).map((part) => part.trim())).toEqual([
    "",
    `${disposition}"photo"; filename="p%22.png"\r\nContent-Type: image/png\r\n\r\n\x01\x02\x03`,
    `${disposition}"more"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\none`,
    `${disposition}"about"\r\nContent-Type: application/json\r\n\r\n{"by":"ann"}`,
    `${disposition}"note"\r\n\r\nhi`,
    "--",
  ]);
  const both = await call(tools, "add_photo", { id: "1", body: { photo: { text: "a", base64: "AQ==" } } }, { secrets });
  expect(both.text).toContain("one of text, base64 and artifact");
  const shopTools = (await loadOpenApi(shop, local())).tools;
  expect(await callAndRecord(shopTools, "add_note", { body: "noted" })).toMatchObject({ body: "noted" });
  expect(await callAndRecord(shopTools, "attach", { body: photo })).toMatchObject({
    method: "PATCH",
    body: "\x01\x02\x03",
    headers: { "content-type": "image/png" },
  });
  expect((await callAndRecord(shopTools, "find_orders", { where: { a: 1 } })).url).toBe(
    "/v1/orders?where=%7B%22a%22%3A1%7D",
  );
});

test("an unreadable OpenAPI operation is refused by name, or skipped with a report", async () => {
  const document = {
    openapi: "3.0.0",
    paths: {
      "/file": { get: { operationId: "far", parameters: [{ $ref: "other.yaml#/x" }] } },
      "/loop": { get: { operationId: "loop", parameters: [{ $ref: "#/components/parameters/loop" }] } },
      "/gap/{id}": { get: { operationId: "gap" } },
      "/regex": {
        get: { operationId: "regex", parameters: [{ name: "a", in: "query", schema: { pattern: "(?=a)" } }] },
      },
      "/fine": {
        get: {
          operationId: "fine",
          parameters: [...["__proto__", "constructor", "toString"].map((name) => ({ name, in: "query", schema: {} }))],
        },
      },
    },
    components: { parameters: { loop: { $ref: "#/components/parameters/loop" } } },
  };
  const { tools, skipped } = await loadOpenApi(document, { ...local(), onUnsupported: "skip" });
  expect(tools.map(({ spec }) => spec.name)).toEqual(["fine"]);
  expect((await callAndRecord(tools, "fine", {})).url).toBe("/v1/fine");
  expect((await callAndRecord(tools, "fine", { proto: "p", query_constructor: "c", toString: "t" })).url).toBe(
    "/v1/fine?__proto__=p&constructor=c&toString=t",
  );
  expect(skipped.map(({ operation: { id }, reason }) => [id, reason])).toEqual([
    ["far", expect.stringContaining("outside the document, which is not supported")],
    ["loop", expect.stringContaining("has a circular reference")],
    ["gap", expect.stringContaining("{id}")],
    ["regex", expect.stringContaining("GET /regex (regex)")],
  ]);
  await expect(loadOpenApi(document, local())).rejects.toMatchObject({ code: "invalid_tool" });
  await expect(loadOpenApi({ swagger: "2.0" })).rejects.toThrow(/version "2.0".*3.0 or 3.1/);
  await expect(loadOpenApi({ openapi: "3.1.0", paths: { "/a": { get: {} } } })).rejects.toThrow("Set baseUrl");
  await expect(loadOpenApi(join(import.meta.dirname, "none.yaml"))).rejects.toMatchObject({ code: "invalid_option" });
});

test("an OpenAPI document is loaded from a URL under the same rules, pinned by digest, and its own secrets are not sent", async () => {
  const document = {
    openapi: "3.1.0",
    servers: [{ url: "https://elsewhere.example" }],
    security: [{ key: [] }],
    paths: { "/a": { get: { operationId: "a" } } },
    components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
  };
  server.answers.set("/doc", { body: JSON.stringify(document) });
  const url = `${server.base}/doc`;
  await expect(loadOpenApi(url)).rejects.toMatchObject({
    code: "invalid_option",
    message: expect.stringContaining("private network"),
  });
  const options = { allowPrivate: true, auth: { key: "KEY" } };
  await expect(loadOpenApi(url, options)).rejects.toThrow(/a secret would be sent to https:\/\/elsewhere.example/);
  const { digest } = await loadOpenApi(url, { ...options, baseUrl: server.base });
  await expect(loadOpenApi(url, { ...options, baseUrl: server.base, pin: digest })).resolves.toMatchObject({ digest });
  server.answers.set("/doc", { body: JSON.stringify({ ...document, info: {} }) });
  await expect(loadOpenApi(url, { ...options, baseUrl: server.base, pin: digest })).rejects.toThrow(
    "`pin` must be the digest of the document",
  );
});

test("credentials of an OpenAPI operation must be given, for supported schemes", async () => {
  await expect(loadPets({ auth: { key: "KEY" } })).rejects.toThrow(/DELETE .*user, or cookie and inQuery, or login/);
  await expect(loadPets({ auth: { kee: "KEY" } })).rejects.toThrow(/"kee".*key, inQuery, cookie, user, login/);
  await expect(loadPets({ auth: { user: "KEY" } })).rejects.toThrow("username, password");
  const own = { secret: "TOKEN", in: "header", name: "authorization", prefix: "token " } as const;
  const bare = { openapi: "3.1.0", paths: { "/a": { get: { operationId: "a" } } } };
  const { tools } = await loadOpenApi(bare, { ...local(), auth: { mine: own } });
  const echoed = await call(tools, "a", {}, { secrets });
  expect(server.observed.at(-1)?.headers.authorization).toBe("token token-5ecret");
  expect(echoed.text).toContain('"authorization":"token [secret]"');
  await expect(loadOpenApi(bare, { auth: { mine: { ...own, in: "body" } as never } })).rejects.toThrow(
    "`auth.mine` must be a custom scheme",
  );
  expect((await loadPets({ auth: false })).tools[0]?.spec.inject).toEqual({});
});

test.each([
  [{ login: "TOKEN" }, { headers: { authorization: "Bearer token-5ecret" } }],
  [
    { user: { username: "USER", password: "PASSWORD" } },
    { headers: { authorization: `Basic ${Buffer.from("ann:pa55 word").toString("base64")}` } },
  ],
  [
    { cookie: "SID", inQuery: "QUERY" },
    { headers: { cookie: "sid=sid-5ecret" }, url: "/v1/pets/1?api_key=query-5ecret%26" },
  ],
] as const)("the secrets of %j reach the server, and no model, row, event or error [R16]", async (auth, wanted) => {
  const { tools } = await loadPets({ auth, operations: { ids: ["dropPet"] } });
  expect(JSON.stringify(tools[0]?.spec)).not.toContain("5ecret");
  server.answers.delete("/v1/pets/1");
  const echoed = await call(tools, "drop_pet", { id: "1" }, { secrets });
  expect(server.observed.at(-1)).toMatchObject(wanted);
  // A server that repeats its request in an answer, in an error and in a header.
  const said = JSON.stringify(server.observed.at(-1));
  server.answers.set("/v1/pets/1", { status: 500, body: `${said}${Object.values(secrets)}` });
  const failed = await call(tools, "drop_pet", { id: "1" }, { secrets });
  server.answers.set("/v1/pets/1", { status: 201, headers: { location: `/x?${said.replace(/[^\x21-\x7e]/g, "")}` } });
  const created = await call(tools, "drop_pet", { id: "1" }, { secrets });
  expect(failed.text).toContain("failed with status 500");
  for (const { text, result, events, store } of [echoed, failed, created]) {
    const history = JSON.stringify(await store.exportThread("t"));
    const seen = [text, JSON.stringify(result), JSON.stringify(events), history].join("\n");
    for (const secret of Object.values(auth).flatMap((given) =>
      typeof given === "string" ? [given] : [given.password],
    )) {
      const text = secrets[secret as keyof typeof secrets];
      expect(seen).not.toContain(text);
      expect(seen).not.toContain(encodeURIComponent(text));
    }
    expect(seen).not.toContain(Buffer.from("ann:pa55 word").toString("base64"));
  }
});

test("arguments of a model cannot set fixed request parameters or parameters of a secret", async () => {
  const document = {
    openapi: "3.1.0",
    info: { title: "shop", version: "1" },
    components: { securitySchemes: { key: { type: "apiKey", in: "query", name: "api_key" } } },
    security: [{ key: [] }],
    paths: {
      "/orders": {
        get: {
          operationId: "orders",
          parameters: [
            { in: "header", name: "X-Tenant", schema: { type: "string" } },
            { in: "query", name: "filter", schema: { type: "object", additionalProperties: { type: "string" } } },
          ],
        },
      },
    },
  };
  const { tools } = await loadOpenApi(document, { ...local(), auth: { key: "KEY" }, headers: { "x-tenant": "7" } });
  expect(toModelTool(tools[0]!.spec).inputSchema["properties"]).toEqual({
    filter: { type: "object", additionalProperties: { type: "string" } },
  });
  expect(await callAndRecord(tools, "orders", { filter: { a: "1" } })).toMatchObject({
    url: "/v1/orders?a=1&api_key=key-5ecret",
    headers: { "x-tenant": "7" },
  });
  const came = await call(tools, "orders", { filter: { api_key: "another" } }, { secrets });
  expect(came.text).toContain('An argument must not set "api_key". Remove it.');
});

test("a reference chain deeper than the schema limit is named in the error, or skipped by option", async () => {
  const schemas = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, nth) => [
      `S${nth}`,
      nth === 9_999
        ? { type: "string" }
        : { type: "object", properties: { next: { $ref: `#/components/schemas/S${nth + 1}` } } },
    ]),
  );
  const content = { "application/json": { schema: { $ref: "#/components/schemas/S0" } } };
  const document = {
    openapi: "3.1.0",
    info: { title: "deep", version: "1" },
    components: { schemas },
    paths: { "/deep": { post: { operationId: "deep", requestBody: { content } } } },
  };
  const { tools, skipped } = await loadOpenApi(document, { ...local(), onUnsupported: "skip" });
  expect(tools).toEqual([]);
  expect(skipped).toMatchObject([{ reason: expect.stringContaining("deeper than 500 levels") }]);
});
