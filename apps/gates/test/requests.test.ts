/** A small share of the generated requests. */
import { expect, test } from "vitest";
import { fuzzRequests } from "../src/requests/fuzz-requests.ts";
import { fuzzedProtocols } from "../src/requests/random-request.ts";

test.each(fuzzedProtocols)(
  "generated requests to the protocol %s are answered below 500, and nothing is logged as a failure [V122]",
  async (protocol) => {
    const { requests, statuses, violations } = await fuzzRequests(protocol, 100);
    expect(violations).toEqual([]);
    expect(requests).toBe(100);
    expect(statuses["200"]).toBeGreaterThan(5);
  },
  60_000,
);
