#include "model/plugin_file.h"

#include "base/memory.h"
#include "base/system/shared_object.h"
#include "emass/plugin.h"
#include "model/model.h"

struct em_plugin {
    em_model_ops ops;
    em_field *fields; /* those of the model, and `library` */
};

static em_status check_table(const char *path, const em_plugin_table *table)
{
    if (table->abi != EMASS_PLUGIN_ABI)
        return em_fail(EM_ECONFIG,
                       "%s: built for version %d of the plug-in interface, expected %d: build it "
                       "again with the headers of this emass",
                       path, table->abi, EMASS_PLUGIN_ABI);
    if (table->ops_size != (int)sizeof(em_model_ops) || table->field_size != (int)sizeof(em_field))
        return em_fail(EM_ECONFIG,
                       "%s: its tables have %d and %d bytes, expected %d and %d: build it again "
                       "with the headers of this emass",
                       path, table->ops_size, table->field_size, (int)sizeof(em_model_ops),
                       (int)sizeof(em_field));
    return EM_OK;
}

/* The options of the model, followed by the path of the plug-in. */
static em_status add_library(em_plugin *plugin)
{
    const size_t align = sizeof(char *);
    const size_t offset = (plugin->ops.options_size + align - 1) / align * align;
    int64_t n = 0;

    while (plugin->ops.fields && plugin->ops.fields[n].name)
        n++;
    em_status status = em_allocate(n + 2, sizeof *plugin->fields, &plugin->fields);
    if (status)
        return status;
    plugin->fields[0] = (em_field){.name = "library",
                                   .type = EM_FIELD_PATH,
                                   .offset = offset,
                                   .doc = "the shared object that this model is in"};
    for (int64_t i = 0; i < n; i++)
        plugin->fields[1 + i] = plugin->ops.fields[i];
    plugin->ops.fields = plugin->fields;
    plugin->ops.options_size = offset + sizeof(char *);
    return EM_OK;
}

em_status em_plugin_open(const char *path, em_plugin **out)
{
    const em_plugin_table *table = NULL;
    em_plugin *plugin = NULL;
    void *handle;
    em_status status = em_shared_object_load(path, &handle);

    *out = NULL;
    if (status)
        return status;
    if (!em_shared_object_find(handle, "emass_plugin", &table))
        return em_fail(EM_ECONFIG, "%s: no plug-in: found no EMASS_PLUGIN in it", path);
    status = check_table(path, table);
    status = status ? status : em_allocate(1, sizeof *plugin, &plugin);
    if (status)
        return status;
    plugin->ops = *table->model;
    status = em_model_complete(path, &plugin->ops);
    status = status ? status : add_library(plugin);
    if (status)
        em_plugin_close(&plugin);
    *out = plugin;
    return status;
}

void em_plugin_close(em_plugin **plugin)
{
    if (*plugin)
        em_release(&(*plugin)->fields);
    em_release(plugin);
}

const em_model_ops *em_plugin_model(const em_plugin *plugin)
{
    return &plugin->ops;
}
