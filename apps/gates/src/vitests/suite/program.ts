import { join } from "node:path";
import { sqliteStore } from "@statewright/sqlite";
import { crashProgram } from "@statewright/testing";
import { shop } from "./shop.ts";

export default crashProgram(() => ({
  graph: shop,
  input: { cents: 5 },
  store: (folder) => sqliteStore(join(folder, "shop.db")),
}));
