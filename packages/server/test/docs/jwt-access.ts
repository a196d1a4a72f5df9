import { jwt, type ServerAccess } from "@statewright/server";

export const access: ServerAccess = {
  authenticate: jwt({
    jwks: "https://id.example/.well-known/jwks.json",
    issuer: "https://id.example",
    audience: "agents",
    toCaller: ({ sub, org }) => ({ id: String(sub), tenant: String(org) }),
  }),
};
