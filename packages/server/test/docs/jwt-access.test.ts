import { expect, test } from "vitest";
import { access } from "./jwt-access.ts";

test("the access option of the page refuses requests without a token and with a malformed one, without asking the provider", async () => {
  for (const authorization of ["", "Bearer not-a-token-of-the-provider", "Basic YW5uOnNlY3JldA=="]) {
    const request = new Request("http://localhost/api/threads", { headers: { authorization } });
    expect(await access.authenticate?.(request)).toBeUndefined();
  }
});
