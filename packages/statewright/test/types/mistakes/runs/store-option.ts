/** A store has an option that stores do not have. */
import { sqliteStore } from "statewright";

// @ts-expect-error Object literal may only specify known properties, but 'readonly' does not exist in type 'SqliteStoreOptions'. Did you mean to write 'readOnly'?
export const store = sqliteStore("shop.db", { readonly: true });
