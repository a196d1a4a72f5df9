/** Headers of requests: nothing of them is saved. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sqliteStore } from "@statewright/sqlite";
import { virtualClock } from "@statewright/testing";
import { expect, onTestFinished, test } from "vitest";
import { createTestServer, testTokens } from "./support/create-test-server.ts";
import { createStorePath } from "./support/test-store.ts";

test("no header of a request and no token is in any file of the store [V103]", async () => {
  const path = createStorePath();
  const store = sqliteStore(path, { world: virtualClock() });
  onTestFinished(() => store.close());
  const { sendJson } = await createTestServer({ store });
  const headers = {
    "x-user-id": "SENTINEL-header-1",
    "x-forwarded-for": "SENTINEL-header-2",
    cookie: "session=SENTINEL-header-3",
    traceparent: "00-5e41e11e15e41e11e15e41e11e15e41e-5e41e11e15e41e11-01",
  };
  const body = { graph: "review", input: { draft: "SAVED-draft" }, metadata: { tenant: "globex", owner: "bob" } };
  const started = await sendJson("/api/threads/t/runs", { body, headers });
  expect(started.status, JSON.stringify(started.body)).toBe(201);
  await sendJson("/api/threads/t/state", { headers });
  await store.close();
  const saved = readdirSync(dirname(path))
    .map((name) => readFileSync(join(dirname(path), name), "latin1"))
    .join("");
  expect(saved).toContain("SAVED-draft");
  for (const text of ["SENTINEL", "5e41e11e15e41e11", ...Object.values(testTokens)]) expect(saved).not.toContain(text);
});
