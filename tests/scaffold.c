extern int scaffold;
int scaffold;
